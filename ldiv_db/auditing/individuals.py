"""The audit of individuals: no class has two rows of one; and where nobody is named, what that hides.

Whose a row is stands in no release, so this is judged on the classes that the release is written from.

Names of columns that say whose a row is, in the languages of the world's larger tables.

A name is taken apart into words (`clientIp`, `license_plate`), and a word from what numbers it (`kunden-nummer`,
`user-name`). Every word must be known, so that `customer_type` and `product_name` are none of these. Where scripts put
no blanks between words, a known word may stand anywhere in the name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ldiv_db.auditing.audit import Audit
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.catalog import Column, columns_of
from ldiv_db.database.engine import Engine
from ldiv_db.database.equality import is_nested
from ldiv_db.database.errors import AuditError, classes_phrase, count_phrase, people_phrase
from ldiv_db.database.templates import FileRelation, Identifier, Relation
from ldiv_db.recoding.encoded import Encoded, Renamed
from ldiv_db.requirements import Classes, Requirement, judge

#: Words for a person, or for what one person has, as a number, a device or an address of theirs.
_ONE = """
socialsecurity securitesociale seguridadsocial segurancasocial sozialversicherung krankenversicherung
rentenversicherung codicefiscale tesserasanitaria rodnecislo nationalidentity nationalinsurance burgerservice
abonnent abonnenten abonne abonnee abonado abonada abbonato abbonata abonent abonat abone suscriptor suscriptora
assinante prenumerant tilaaja elofizeto predplatitel proband probanden teilnehmer teilnehmerin bewohner einwohner
buerger versicherte versicherungsnehmer arbeitnehmer angestellter lieferant klientin
beneficiaire allocataire assuree patiente locataire contribuable ressortissant salariee etudiante
asegurado asegurada beneficiario beneficiaria contribuyente ciudadano ciudadana habitante estudiante alumna
trabajador trabajadora empleada paciente expediente historiaclinica
assistito assistita assicurato assicurata contribuente cittadino lavoratore studente matricola dipendenti
deelnemer werknemer huurder bewoner burger leerling verzekerden lidmaatschap
segurado segurada cidadao trabalhador estudante inscrito doente
ubezpieczony ubezpieczonego pracownik pracownika uczestnik uczestnika czlonek czlonka mieszkaniec obywatel uczen
medlem medlems pasient patientens deltagare deltaker deltager anstalld ansatt ansat forsakrad medborgare innbygger
fodselsnummer elev personid henkilo jasen tyontekija opiskelija hetu kundens
ucastnik pojistenec obcan zamestnanec paciens beteg dolgozo hallgato asigurat angajat sigortali calisan ogrenci
застрахованный участник студент συνδρομητης
user username login account acct customer client patient member employee subscriber person passenger guest student pupil
citizen tenant borrower policyholder insured donor visitor contact owner driver player teacher worker applicant sender
candidate recipient buyer seller payer payee beneficiary respondent participant subject author handle nickname nick
spouse father mother parent email mail ip ipv mac imei imsi msisdn phone telephone tel mobile cellphone fax
ssn nhs mrn passport iban bic plate licenseplate vin device cookie session card pan taxid nationalid whatsapp twitter
socialsecuritynumber
benutzer nutzer anwender kunde kunden kundin patienten patientin konto mitarbeiter mitglied mitglieds versicherter
versicherten versicherungsnummer person personal personen personalausweis handy telefon kennzeichen autokennzeichen
nummernschild ausweis steuer steuerid sozialversicherungs matrikel schueler studenten mieter besitzer halter fahrer
utilisateur identifiant compte adherent assure salarie employe courriel portable plaque immatriculation nir matricule
eleve etudiant abonne usager
usuario usuaria utilizador cliente cuenta conta paciente correo telefono telefone celular movil telemovel placa
matricula dni nie nif nic rfc curp cedula pasaporte passaporte empleado funcionario socio alumno aluno afiliado cpf
contribuinte utente conto paziente cellulare targa codicefiscale dipendente iscritto
gebruiker gebruikers klant klanten rekening telefoon kenteken bsn medewerker verzekerde
uzytkownik klient klienta pacjent pacjenta pesel nip rejestracja uzivatel zakaznik telefonu rodnecislo
felhasznalo ugyfel utilizator cnp anvandare anvandar kund personnummer bruker bruger cpr kayttaja asiakas potilas
henkilotunnus puhelin kullanici musteri hesap hasta plaka tckn tckimlik eposta
pengguna pelanggan pasien akun telepon ktp nik nguoidung khachhang benhnhan taikhoan dienthoai mtumiaji mteja simu
polzovatel klienta pacient snils inn telefonnyi
пользователь логин клиент пациент абонент сотрудник счет телефон паспорт снилс инн почта користувач пацієнт
χρηστης πελατης ασθενης τηλεφωνο
"""
#: Words for names and addresses, which several people may share.
_SHARED = """
name fullname firstname forename givenname lastname surname familyname maidenname middlename initials address
addr street vorname nachname familienname geburtsname rufname zuname anschrift adresse strasse hausnummer
nom prenom prenoms rue adres nombre nombres apellido apellidos direccion domicilio calle nome sobrenome apelido
endereco morada rua cognome indirizzo naam voornaam achternaam straat imie nazwisko ulica jmeno prijmeni nev vezeteknev
keresztnev nume prenume namn fornamn efternamn navn fornavn efternavn etternavn nimi etunimi sukunimi osoite isim soyad
soyadi adsoyad nama alamat hoten diachi jina imya familiya otchestvo
имя фамилия отчество фио адрес улица прізвище ονομα επωνυμο διευθυνση
"""
#: Words that say nothing of whose a row is, and ends of words.
_BESIDE = """
id ids no nr num number nummer nummern numero numer number code key ref hash uuid guid name namen naam nom nombre nome
numera numeru cislo szam numarul sayi nro matr ns
e full first last given family maiden middle home work private primary secondary src source dst dest remote local host
bank credit debit completo completa complet adi license licence vehicle car tax line de del da do di la le du of
the mobile cell
"""
_ENDS = (
    "nummeret", "numret", "nummer", "number", "numer", "namen", "name", "naam", "adresse", "address", "code", "num",
    "nr", "no", "id",
)  # fmt: skip
_STARTS = ("numero", "nummer", "numer", "num", "nr", "id")
#: Words for numbers by which people are called or write: of few digits they count something else.
_PHONES = """
phone telephone tel mobile cellphone cell fax portable handy telefon telefono telefone cellulare celular movil telemovel
telefoon telefonu telefonnyi puhelin telepon msisdn
"""
#: What is measured or chosen, and things that several people have, each with all that is theirs.
_THINGS = """
model modell modele modelo modello make brand marke marque marca merk product produkt produit producto prodotto produto
term semester trimester quarter period periode season saison week woche semaine month monat mois year jahr annee ano
anno jaar rok born birth dob yob geboren geburt geburtsjahr geburtsdatum naissance nacimiento nascita nascimento
day tag wave round visit age alter alder alters edad idade eta leeftijd wiek ika jahrgang birthyear
weight weights wt wgt wght fnlwgt pweight pwgt gewicht gewichtung poids peso waga vikt vekt vaegt ponderation
ponderacion height size score grade class klasse classe clase type typ kind category kategorie categorie group gruppe
groupe grupo region county state country land pays pais city town stadt ville ciudad cidade citta station school
schule ecole escuela course kurs cours hospital ward department abteilung service store shop branch drug species
plot block site title job occupation beruf metier
"""
#: As they stand in names of other scripts, in which no words are told apart.
_ANYWHERE = """
姓名 名字 用户 用戶 客户 客戶 患者 病人 账号 帐号 帳號 账户 身份证 手机 手機 电话 電話
地址 邮箱 郵箱 车牌 护照 会员 會員 员工 学号 工号
氏名 名前 ユーザ 顧客 口座 住所 メール 会員番号 社員 이름 성명 사용자 고객 환자 계좌 주소 전화 이메일 회원 직원
اسم مستخدم عميل مريض حساب عنوان هاتف بريد نام کاربر مشتری بیمار آدرس שם משתמש לקוח מטופל כתובת טלפון
नाम यूज़र उपयोगकर्ता ग्राहक रोगी मरीज पता फ़ोन फोन खाता নাম ব্যবহারকারী গ্রাহক রোগী ঠিকানা பெயர் పేరు ชื่อ ผู้ใช้ ลูกค้า ผู้ป่วย ที่อยู่ โทรศัพท์
"""

#: A column of up to this many values is taken for a list of kinds,
FEW_VALUES = 50
#: whatever its name is if they are as few as these, or if each of not many more has more rows than there are values;
FEW_KINDS, SOME_KINDS = 4, 20
#: one whose values have this many rows on average for one of categories, which name nobody in particular,
CATEGORY_ROWS = 100
#: and one with more different values than this share of the rows for one of a single row each.
NEARLY_UNIQUE = 0.95


def _plain(text: str) -> str:
    """The text in small letters, without the marks on its letters."""
    apart = unicodedata.normalize("NFKD", text.casefold()).replace("ı", "i")
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


_PEOPLE, _NAMES, _AROUND, _DIALLED, _WITH_MANY = (
    frozenset(_plain(words).split()) for words in (_ONE, _SHARED, _BESIDE, _PHONES, _THINGS)
)
_PARTS = frozenset(unicodedata.normalize("NFC", _ANYWHERE).split())


def tells_one(name: str) -> bool:
    """True if a column of that name says whose a row is: rows of one value are one person's."""
    return _is_of(name, _PEOPLE) or any(part in unicodedata.normalize("NFC", name) for part in _PARTS)


def tells_somebody(name: str) -> bool:
    """True if it says who somebody is, by a name or an address that several people may share as well."""
    return tells_one(name) or _is_of(name, _NAMES)


def is_dialled(name: str) -> bool:
    """True if it says whose a row is by a number to be dialled alone, which has more than a few digits."""
    return tells_one(name) and _is_of(name, _DIALLED) and not _is_of(name, _PEOPLE - _DIALLED)


def tells_thing(name: str) -> bool:
    """True if a word of it is for what several people have: rows of one value are then of them all."""
    return not tells_somebody(name) and not _WITH_MANY.isdisjoint(_words(name))


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_\d]+", _plain(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)))


def _is_of(name: str, known: frozenset[str]) -> bool:
    """True if all words of a name are known, and one is of `known`."""
    words = _words(name)
    core = "".join(word for word in words if word not in _AROUND)
    return (
        "".join(words) in known
        or (len(words) > 1 and core in known)
        or (
            any(_stem(word, known) for word in words)
            and all(word in _AROUND or _stem(word, _PEOPLE | _NAMES) for word in words)
        )
    )


def _stem(word: str, known: frozenset[str]) -> bool:
    """True if a word is known, as it is or without what numbers it."""
    while word not in known:
        start = next((start for start in _STARTS if word.startswith(start) and word[len(start) :] in known), None)
        if start is not None:
            return True
        end = next((end for end in _ENDS if len(word) > len(end) and word.endswith(end)), None)
        if end is None:
            return False
        word = word.removesuffix(end)
    return True


@dataclass(frozen=True)
class Individuals(Requirement, in_policy=False):
    """No individual has two rows in a class (BSGI, Section 5.2.2): whose a row is differs like a unique value."""

    name = "individuals"
    reaches = "rows"
    l: ClassVar[int] = 1

    @property
    def template(self) -> str:
        return "requirements/unique_distinct"

    def unique_class_size(self) -> int:
        return 1

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return "one row of an individual"


def audit_individuals(engine: Engine, encoded: Encoded, assigned: Relation) -> list[Audit]:
    """The audit of the classes as they are about to be published; empty if the policy names no individual.

    `assigned` is (row_id, class_id), whose rows are those of the encoded table.
    """
    if encoded.individual is None:
        return []
    histogram = engine.materialise(
        "histogram",
        "auditing/count_individuals",
        rows=encoded.rows,
        assigned=assigned,
        individual=encoded.individual.code,
    )
    classes = Classes(engine, histogram)
    verdict = judge(engine, Individuals(), classes)
    rows = engine.total(classes.totals, "rows")
    classes.drop()
    engine.drop(histogram)
    return [Audit(encoded.individual.column.name, verdict.classes, rows, (verdict,))]


def require_together(engine: Engine, judged: Subject) -> None:
    """Raise AuditError unless all rows of a person have the labels of one class."""
    params = {"published": judged.table, "class_columns": judged.renamed, "person": Identifier(judged.person or "")}
    parted = engine.scalar("auditing/count_parted", **params)
    if parted:
        raise AuditError(f"rows of {count_phrase(parted, 'person', 'people')} stand in several classes, not together")


# -- where no individual is named ----------------------------------------------------------------------


@dataclass(frozen=True)
class LikelyPeople:
    """A column that may say whose a row is, its different values, and the rows that have one."""

    column: Column
    people: int
    rows: int

    def __str__(self) -> str:
        rows = count_phrase(self.rows, "row belongs", "rows belong")
        counts = f"{rows} to {people_phrase(self.people)} if {self.column.name} identifies people"
        return f"{counts}, and requirements count rows"


def likely_people(
    engine: Engine, table: Relation | FileRelation, columns: Sequence[Column], dropped: Sequence[str] = ()
) -> LikelyPeople | None:
    """Of the columns that may say whose a row is, if somebody has several, the one to go by; one statement.

    It is known by its name, or is one of those that are `dropped` and has more than a few values of few rows each. What
    has few kinds of values, or labels for values, is none.
    """
    aside = {name.lower() for name in dropped}
    asked = [c for c in columns if not (c.is_time or c.is_fractional or c.type == "BOOLEAN" or is_nested(c))]
    asked = [c for c in asked if tells_one(c.name) or (c.name.lower() in aside and may_say_whose(c.name))]
    if not asked:
        return None
    kinds = ("rows", "different", "labels")
    counted = [{kind: Identifier(f"{kind}_{i}") for kind in kinds} for i in range(len(asked))]
    columns_counted = [
        {"column": Identifier(c.name), "is_text": c.type == "VARCHAR", **names}
        for c, names in zip(asked, counted, strict=True)
    ]
    found = engine.record("auditing/count_repeated", source=table, columns=columns_counted)
    every = [
        LikelyPeople(c, found[names["different"].name], found[names["rows"].name])
        for c, names in zip(asked, counted, strict=True)
        if 2 * found[names["labels"].name] <= found[names["different"].name]
    ]
    several = [one for one in every if _has_several(one)]
    return min(several, key=lambda one: (not tells_one(one.column.name), one.people), default=None)


def are_few_kinds(values: int, rows: int) -> bool:
    """True if so many values of so many rows are a few kinds of things, whatever their column is called."""
    return values <= FEW_KINDS or (values <= SOME_KINDS and rows > values**2)


def may_say_whose(name: str) -> bool:
    """True if a column that is not published may say whose a row is, for all that its name says."""
    return not tells_somebody(name) and not tells_thing(name)


def _has_several(found: LikelyPeople) -> bool:
    """True if people have several rows, and are more than a few kinds of things."""
    many, few_rows = found.people > FEW_VALUES, found.rows < CATEGORY_ROWS * found.people
    kinds = are_few_kinds(found.people, found.rows)
    is_one = many or (few_rows and not kinds) if tells_one(found.column.name) else many and few_rows
    return 1 < found.people <= NEARLY_UNIQUE * found.rows and is_one


def warn_of_people(
    engine: Engine,
    people: LikelyPeople,
    rows: Relation | FileRelation,
    person: Identifier,
    members: Relation | None = None,
    class_columns: Sequence[Renamed] = (),
) -> str:
    """The warning of what counting rows hides in classes, empty if nothing.

    They are the rows that agree on some columns, or `members` (row_id, class_no).
    """
    params = {"rows": rows, "members": members, "class_columns": class_columns, "person": person}
    found = engine.record("auditing/count_people", **params)
    if not found["repeated"]:
        return ""
    repeated = f"{found['repeated']:,} of {classes_phrase(found['classes'])} have two rows of one person"
    way_out = f"`individual: {people.column.name}` in the policy keeps one person's rows apart"
    return f"{people}: {repeated}, {found['alone']:,} have one person alone; {way_out}"


def people_warning(engine: Engine, subject: Subject, sensitive: Sequence[str]) -> str:
    """The warning of what counting rows hides in a table; empty if no column says by its name whose they are.

    What classes are told apart by, and what is sensitive, says whose no row is.
    """
    if subject.pair or (isinstance(subject.table, FileRelation) and (form := subject.table.form) and form.is_exported):
        return ""
    aside = {name.lower() for name in [*sensitive, *subject.class_columns]}
    columns = [column for column in columns_of(engine, subject.table) if column.name.lower() not in aside]
    people = likely_people(engine, subject.table, columns)
    if people is None:
        return ""
    person = Identifier(people.column.name)
    return warn_of_people(engine, people, subject.table, person, class_columns=subject.renamed)
