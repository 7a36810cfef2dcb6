"""Adult's 30,162 clean training rows, or some of them, as a table."""


def make_adult(con, fixtures, columns, rows=32561, order="file_row_number"):
    con.execute(
        f"CREATE TABLE adult AS SELECT {', '.join(columns)} FROM read_parquet(?, file_row_number = true)"
        f" WHERE file_row_number < {rows} AND workclass IS NOT NULL AND occupation IS NOT NULL"
        f" AND native_country IS NOT NULL ORDER BY {order}",
        [str(fixtures / "adult" / "adult.parquet")],
    )
