"""What columns are called that say whose a row is: in the languages of the world's larger tables.

A name is taken apart into words (`clientIp`, `license_plate`), and a word from what numbers it (`kunden-nummer`,
`user-name`). Every word must be known, so that `customer_type` and `product_name` are none of these. Where scripts put
no blanks between words, a known word may stand anywhere in the name.
"""

from __future__ import annotations

import re
import unicodedata

#: Words for a person, or for what one person has, as a number, a device or an address of theirs.
_ONE = """
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
e full first last given family maiden middle home work private primary secondary src source dst dest remote local host
bank credit debit completo completa complet adi license licence vehicle car tax line de del da do di la le du of
the mobile cell
"""
_ENDS = ("nummer", "number", "numer", "namen", "name", "naam", "adresse", "address", "code", "num", "nr", "no", "id")
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
#: one whose values have this many rows on average for one of categories, which name nobody in particular,
CATEGORY_ROWS = 100
#: and one with more different values than this share of the rows for one of a single row each.
NEARLY_UNIQUE = 0.95


def _plain(text: str) -> str:
    """The text in small letters, without the marks on its letters."""
    apart = unicodedata.normalize("NFKD", text.casefold()).replace("ı", "i")
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


_PEOPLE, _NAMES, _AROUND = (frozenset(_plain(words).split()) for words in (_ONE, _SHARED, _BESIDE))
_PARTS = frozenset(unicodedata.normalize("NFC", _ANYWHERE).split())


def tells_one(name: str) -> bool:
    """Whether a column of that name says whose a row is: rows of one value are one person's."""
    return _is_of(name, _PEOPLE) or any(part in unicodedata.normalize("NFC", name) for part in _PARTS)


def tells_somebody(name: str) -> bool:
    """Whether it says who somebody is, by a name or an address that several people may share as well."""
    return tells_one(name) or _is_of(name, _NAMES)


def _is_of(name: str, known: frozenset[str]) -> bool:
    """Whether all words of a name are known, and one is of `known`."""
    words = re.findall(r"[^\W_\d]+", _plain(re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)))
    return "".join(words) in known or (
        any(_stem(word, known) for word in words)
        and all(word in _AROUND or _stem(word, _PEOPLE | _NAMES) for word in words)
    )


def _stem(word: str, known: frozenset[str]) -> bool:
    """Whether a word is known, as it is or without what numbers it."""
    while word not in known:
        end = next((end for end in _ENDS if len(word) > len(end) and word.endswith(end)), None)
        if end is None:
            return False
        word = word.removesuffix(end)
    return True
