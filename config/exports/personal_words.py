"""The words by which `config.exports.personal` recognises personal data in names of fields, records and
topics.

English, German, French, Spanish, Italian, Dutch and Polish. Phrases are in snake case, without accents; the
underscores are optional in a name, so `first_name` is also found as firstName and firstname.
"""

from __future__ import annotations

from typing import Final

#: Values that may be stored as text, as a number or as a time.
VALUES: Final = tuple(
    """
    phone telephone phone_no telnr tel_nr mobilnummer kdnr kd_nr kundennr personalnummer matrikelnummer gebdat
    yob nif nss mobile cell_phone cell_number cellphone msisdn tel telefon telefonnummer handy handynummer
    rufnummer telephon portable_number numero_portable numero_telephone telefono movil numero_movil celular
    cellulare telefoon telefoonnummer komorka numer_telefonu fax telefax telecopie imei imsi birth birthday
    birthdate dob date_of_birth year_of_birth geburt geburtsdatum geburtstag geburtsjahr geburtsort naissance
    date_naissance date_de_naissance nacimiento fecha_nacimiento fecha_de_nacimiento nascita data_nascita
    data_di_nascita geboorte geboortedatum urodzenia data_urodzenia urodziny ip ipv ip_address ip_addr
    passport reisepass passeport pasaporte passaporto paspoort paszport ssn social_security
    social_security_number sozialversicherungsnummer national_id national_insurance national_insurance_number
    nino identity_card id_card identity_number personalausweis ausweisnummer carte_identite numero_identite
    dni nie carta_identita codice_fiscale bsn burgerservicenummer pesel dowod_osobisty numer_dowodu tax_id
    tax_number tax_no tin vat_id vat_number steuer_id steuer_nr steuernummer ust_id ust_id_nr numero_fiscal
    numero_tva numero_iva partita_iva btw_nummer nip account_number account_no account_nr acct_number acct_no
    bank_account konto_nr kontonummer bankverbindung numero_compte numero_de_compte compte_bancaire
    numero_cuenta numero_de_cuenta cuenta_bancaria numero_conto conto_corrente rekeningnummer bankrekening
    numer_konta rachunek_bankowy iban card_number card_no card_nr card_pan pan cvv cvc credit_card debit_card
    creditcard kreditkarte kreditkartennummer kartennummer carte_bancaire numero_carte numero_de_carte tarjeta
    numero_tarjeta numero_de_tarjeta carta_di_credito numero_carta kaartnummer creditcardnummer numer_karty
    licence_plate license_plate number_plate plate_number licence_number license_number driver_licence
    driver_license drivers_licence drivers_license driving_licence driving_license kennzeichen kfz_kennzeichen
    fuehrerschein fuehrerscheinnummer immatriculation plaque_immatriculation permis_de_conduire matricula
    targa kenteken rijbewijs numer_rejestracyjny prawo_jazdy
    """.split()
)
#: Values that are texts or bytes, and records or arrays of them.
TEXTS: Final = tuple(
    """
    fname lname email e_mail mail email_address mail_address courriel adresse_mail adresse_email correo
    correo_electronico posta_elettronica emailadresse adres_email username login user_login login_name
    benutzername anmeldename nom_utilisateur nombre_usuario nome_utente gebruikersnaam nazwa_uzytkownika
    surname forename firstname lastname fullname first_name last_name middle_name full_name given_name
    family_name maiden_name display_name nickname nick_name screen_name vorname nachname familienname zuname
    geburtsname spitzname rufname prenom nom_famille nom_de_famille nom_complet apellido nombre_completo
    nombre_de_pila cognome nome_completo voornaam achternaam imie nazwisko password passwort kennwort passwd
    pwd passphrase mot_de_passe contrasena parola_chiave wachtwoord haslo pin_code signature unterschrift
    firma_cliente handtekening podpis cookie cookie_id advertising_id idfa gaid biometric fingerprint
    """.split()
)
#: Places where a person may live: texts, and records of them. Unlike other texts, they may be named by an
#: id or a code.
ADDRESSES: Final = tuple(
    """
    address addr street house_number house_no adresse anschrift lieferadresse rechnungsadresse wohnort
    wohnsitz strasse strassenname hausnummer hausnr rue domicile direccion calle domicilio indirizzo
    numero_civico adres straat huisnummer woonplaats ulica numer_domu adres_zamieszkania
    """.split()
)
#: Traits of a person, which are personal as enums too.
TRAITS: Final = tuple(
    """
    gender sex geschlecht sexe genero sesso geslacht plec marital_status familienstand religion konfession
    ethnicity nationality nationalitaet staatsangehoerigkeit nationalite nacionalidad nazionalita
    nationaliteit narodowosc blood_type blutgruppe diagnosis
    """.split()
)
#: People. The name of a record or topic that ends in one of these says that its fields describe a person.
PERSONS: Final = tuple(
    """
    customer client user person people patient employee contact passenger guest member subscriber owner
    holder cardholder accountholder policyholder driver buyer purchaser shopper consumer recipient receiver
    sender payer payee visitor student pupil resident citizen applicant candidate caller rider staff worker
    attendee participant traveller traveler voter spouse partner_person beneficiary insured borrower lender
    individual consignee cust usr kunde kunden kundin nutzer benutzer mitarbeiter fahrer gast gaeste
    mitglied inhaber karteninhaber kontoinhaber besitzer halter empfaenger absender ansprechpartner kontakt
    kontaktperson patientin versicherter versicherte person personen kaeufer besteller schueler teilnehmer
    reisende bewohner bewerber utilisateur employe personne passager destinataire expediteur titulaire
    proprietaire acheteur abonne assure conducteur cliente usuario empleado persona pasajero destinatario
    remitente titular propietario comprador paciente conductor utente dipendente passeggero proprietario
    acquirente mittente paziente intestatario player gamer seller author reviewer teacher doctor physician
    manager courier klant gebruiker medewerker persoon passagier ontvanger afzender eigenaar bestuurder
    klient klienta uzytkownik uzytkownika pracownik pracownika osoba osoby pasazer pasazera pacjent pacjenta
    odbiorca nadawca wlasciciel kierowca
    """.split()
)
#: Those of the persons above whose bare name is often that of a machine, a team or a program, not of a
#: person.
NOT_ALWAYS_PERSONS: Final = frozenset(
    "client member owner holder driver guest contact staff conductor player courier manager".split()
)
#: What is personal in a record about a person, or next to a person in one name: text, number or time.
OF_PERSON_VALUES: Final = tuple(
    """
    id ident identifier number no nr uuid guid key code age card pin cell gsm portable salary income wage
    gehalt lohn salaire sueldo salario stipendio salaris pensja nummer numero numer alter edad eta leeftijd
    wiek lat lon lng latitude longitude breitengrad laengengrad latitud longitud
    """.split()
)
#: The same for texts.
OF_PERSON_TEXTS: Final = tuple(
    """
    name label alias handle initials salutation anrede nom nombre nome naam nazwa photo picture image avatar
    portrait foto zdjecie location position coordinates geo city town ort wohnort stadt ville ciudad citta
    stad miasto zip zip_code zipcode postal_code postcode post_code plz postleitzahl code_postal
    codigo_postal cap kod_pocztowy
    """.split()
)
#: What is personal in a record about an address, or next to its word in one name.
OF_ADDRESS_TEXTS: Final = tuple(
    """
    name line city town ort stadt ville ciudad citta stad miasto zip zip_code zipcode postal postal_code
    postcode post_code plz postleitzahl code_postal codigo_postal cap kod_pocztowy lat lon lng latitude
    longitude location coordinates geo
    """.split()
)
#: Records about an address. The words of ADDRESSES make a record personal as a whole.
PLACES_OF_PERSONS: Final = tuple(
    """
    ship_to bill_to sold_to deliver_to send_to shipping billing delivery residence home invoice_to lieferung
    rechnung livraison facturation envio entrega facturacion spedizione consegna fatturazione bezorging
    levering verzending dostawa wysylka
    """.split()
)
#: Texts of people that may hold anything, beside other personal fields.
FREE_TEXTS: Final = tuple(
    """
    note comment remark message feedback instruction review bemerkung notiz kommentar nachricht hinweis
    commentaire remarque comentario nota mensaje commento messaggio opmerking bericht uwaga uwagi wiadomosc
    """.split()
)
#: Texts that say where a person is, more exactly than a city.
EXACT_PLACES: Final = tuple(
    """
    zip zip_code zipcode postal_code postcode post_code plz postleitzahl code_postal codigo_postal cap
    kod_pocztowy lat lon lng latitude longitude location coordinates geo
    """.split()
)
#: A name is not personal if one of these follows the personal word: it then says something about the value.
ABOUT_THE_VALUE: Final = frozenset(
    """
    count counter type kind category status flag verified verification confirmed confirmation valid
    validated invalid validity optin opt consent enabled disabled sent opened clicked bounced template
    subject campaign provider format length size len language lang preference required missing source
    version locale platform app os model brand network rate ratio score light lamp level plan tier class
    group segment list quota limit policy event log queue error attempt retry since updated changed created
    modified seen expires expiry expiration issued server host port gateway device method order tax fee cost
    price share percent total anzahl typ art menge
    """.split()
)
#: Words of a record's or topic's name that say nothing about whom or what it describes.
NEUTRAL: Final = frozenset(
    """
    data detail info information profile record entity object item entry row value values payload body
    content message after before envelope key root master dim dimension fact stg raw snapshot cdc topic
    table stream v current latest full public prod dev created updated deleted changed registered
    registration signup sign up account avro json dto model type primary secondary main personal private
    attribute attr attributes properties property meta metadata the of and stammdaten daten angaben donnees
    datos dati gegevens dane
    """.split()
)
