# A small image that runs `ldiv` on a mounted folder:
#   docker build -t ldiv . && docker run --rm -v "$PWD:/data" ldiv run clinic.duckdb policy.yml
FROM python:3.12-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-compile /wheels/*.whl && rm -r /wheels && useradd --uid 1000 ldiv
USER ldiv
WORKDIR /data
ENTRYPOINT ["ldiv"]
