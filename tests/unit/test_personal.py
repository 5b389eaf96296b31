"""Which fields are personal by their names, their place and their neighbours, in the languages of the shipped
contracts.
"""

from __future__ import annotations

import pytest

from config.exports import topic_schema
from config.exports.personal import Finding, add_findings, personal_fields
from config.exports.topic_schema import TopicSchema

LOGICAL = {
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "timestamp-millis"},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "decimal": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "enum": {"type": "enum", "name": "Choice", "symbols": ["A"]},
}

#: Paths of texts in a topic of events, without tags.
PERSONAL_TEXTS = """
    email Email eMail e_mail EMAIL2 customer_email contactEmail emails email_id emailAddress mailAddress mail courriel correo
    correo_electronico adres_email emailadresse
    phone phoneNumber contactPhone telephone tel telefon telefonNr Telefonnummer handy handynummer mobile mobile_number
    cell_phone cellphone msisdn movil telefono celular cellulare telefoon komorka fax fax_number faxNummer
    first_name firstName firstname last_name lastname surname fullName middle_name maiden_name given_name familyName nickname
    nickName screen_name displayName customer_first_name vorname Nachname familienname geburtsname spitzname prenom nom_famille
    apellido apellidos apellido1 cognome voornaam achternaam imie nazwisko prénom
    username user_name userName login passwd password passwort kennwort mot_de_passe contrasena wachtwoord haslo
    customer_name customerName owner_name ownerName contact_name passengerName patient_name guestName employeeName kundenname
    nom_client nombre_cliente nome_cliente klant_naam name_of_the_customer recipientName empfaenger_name nazwa_klienta
    street home_street streetAddress address billingAddress clientAddress strasse Straße strassenname hausnummer house_number
    anschrift lieferadresse rechnungsadresse rue calle direccion indirizzo straat huisnummer adres ulica address_line_1
    shipping_city billing_zip delivery_postal_code home_city shipCity customer_city customerZip recipient_postcode
    birth_date dateOfBirth dob geburtsdatum geburtstag date_naissance fecha_nacimiento data_nascita geboortedatum data_urodzenia
    ip ipAddress clientIPAddress ipv4 ip_address
    passport passport_number reisepass passeport ssn social_security_number personalausweis national_id pesel dni bsn
    codice_fiscale taxId tax_id tax_number steuernummer steuer_id vat_id vatNumber nip
    account_number accountNumber bankAccount kontonummer iban IBAN numero_cuenta rekeningnummer
    card_number cardNumber cardPAN credit_card creditCardNumber kreditkartennummer numero_tarjeta cvv pan
    licence_plate licensePlate number_plate kennzeichen immatriculation matricula targa kenteken driversLicense
    gender sex geschlecht nationality religion signature unterschrift cookie_id
    customer_id customerId userid user_id userUuid patientId employee_number employeeNo kundennummer kunden_nr mitarbeiterNr
    id_cliente id_client passenger_id memberNumber user_avatar customerPhoto
    customer user assigned_employee passenger kunde recipient
    customer.name customer.city customer.zip customer.postal_code customer.label customer.id customer.photo customer.initials
    user.name user.handle user.avatar owner.name owner.label buyer.alias patient.note patient.number kunde.name kunde.ort
    kunde.plz klient.miasto cliente.nombre utente.nome employe.nom contact.fullName customer.homeCity person.name
    customer_info.name customerDetails.name order.customer.name orders[].customer.name customers[].name customers{}.name
    address.new_city shipTo.new_zip customer.details.name address.city shipTo.zip ship_to.city billing.postal_code adresse.ort residence.town
""".split()
#: (path, kind)
PERSONAL_VALUES = [
    ("phone", "long"),
    ("fax", "long"),
    ("tax_id", "long"),
    ("card_number", "long"),
    ("account_number", "int"),
    ("passport_no", "long"),
    ("birth_date", "date"),
    ("geburtsdatum", "date"),
    ("birthYear", "int"),
    ("user_id", "long"),
    ("customer_uuid", "uuid"),
    ("kundennummer", "int"),
    ("customer.id", "int"),
    ("customer.age", "int"),
    ("customer.lat", "double"),
    ("user.longitude", "float"),
    ("employee.salary", "decimal"),
    ("address.lat", "double"),
    ("address.lon", "double"),
    ("address.lng", "double"),
    ("address.latitude", "double"),
    ("address.longitude", "double"),
    ("gender", "enum"),
    ("customer.nationality", "enum"),
    ("signature", "bytes"),
    ("customer.photo", "bytes"),
]

#: Paths of texts that are not personal.
OTHER_TEXTS = """
    name id title label product productName product_name product.name item.name lines[].name lines[].product.name store.name
    shop.name sensor.name device.name department.name company.name brand.name category.name symbol side currency status channel
    emailed streetlights street_lights shipment customer_region customer_segment customer_type product_code address_id
    address_ids street_type email_template email_subject email_status email_format mailing_list phone_model phone_brand phone_type
    mobile_platform mobile_app_version mail_server ip_version username_format user_agent user_agent_version host_name file_name
    event_name eventName page_name topic_name table_name column_name region country city plz store.city warehouse.postal_code
    store_city airport.city station.location weather.city note comment message product.note line.label chart.title
    number_of_customers customer_count customers_per_day member_status guest_count_type order_id order_number invoice_no
    article_number artikelnummer bestellnummer device_id session_type part_number serial_number zipper handyman celloId
    accountant cardboard discard pantry telemetry televisor ipsum shipping_method delivery_status billing_cycle
    birth_rate name_count driver client member customer_order.name user_story.title user_event.name CustomerOrder.label
    typeName variantLabel coupon_code category unit locale zone bill_line shipping_line delivery_name
    clients next_driver address_key address_code address_uuid street_code
    ship_name shipTo.building_name shipTo.new_line customer.new_zip
""".split()
OTHER_VALUES = [
    ("mailing_list_size", "int"),
    ("street_lights", "int"),
    ("email_sent", "boolean"),
    ("has_phone", "boolean"),
    ("email_sent_count", "int"),
    ("email_opened_at", "time"),
    ("address_count", "long"),
    ("phone_count", "int"),
    ("phone_verified_at", "time"),
    ("ip_count", "int"),
    ("card_fee", "decimal"),
    ("customer_count", "int"),
    ("number_of_users", "int"),
    ("nombre_cliente", "int"),
    ("user_label", "int"),
    ("customer_note", "int"),
    ("customer_since", "date"),
    ("mobile_platform", "enum"),
    ("email_type", "enum"),
    ("customer.is_active", "boolean"),
    ("customer.segment", "enum"),
    ("customer.orders", "int"),
    ("store.lat", "double"),
    ("lat", "double"),
    ("age_of_order", "int"),
    ("order_id", "long"),
    ("line_no", "int"),
    ("name_length", "int"),
    ("login_count", "int"),
    ("login_at", "time"),
    ("street_width", "double"),
    ("signature_version", "int"),
    ("user_quota", "long"),
]


def of(path: str, kind: str, topic: str = "events", record: str = "Event") -> TopicSchema:
    """Return the schema of a topic with one field at the path.

    Records on the way have types of neutral names.
    """
    type_ = LOGICAL.get(kind, kind)
    names = path.split(".")
    for depth in range(len(names) - 1, -1, -1):
        name = names[depth]
        for ending in ("[]", "{}"):
            if name.endswith(ending):
                name = name.removesuffix(ending)
                type_ = (
                    {"type": "array", "items": type_} if ending == "[]" else {"type": "map", "values": type_}
                )
        fields = [{"name": name, "type": type_}]
        type_ = {"type": "record", "name": f"Type{depth}" if depth else record, "fields": fields}
    return topic_schema.from_avro(type_, topic)


def is_personal(path: str, kind: str, **named: str) -> bool:
    schema = of(path, kind, **named)
    return path in schema.personal and not schema.personal[path].only_as_text


@pytest.mark.parametrize("path", sorted({path for path in PERSONAL_TEXTS if path.isascii()}))
def test_a_text_with_a_personal_name_is_personal(path):
    assert is_personal(path, "string")


@pytest.mark.parametrize(("path", "kind"), PERSONAL_VALUES)
def test_a_value_with_a_personal_name_is_personal(path, kind):
    assert is_personal(path, kind)


@pytest.mark.parametrize("path", sorted(set(OTHER_TEXTS)))
def test_a_text_with_another_name_is_not_personal(path):
    assert of(path, "string").personal == {}


@pytest.mark.parametrize(("path", "kind"), OTHER_VALUES)
def test_a_value_with_another_name_is_not_personal(path, kind):
    assert of(path, kind).personal == {}


def test_a_finding_for_texts_does_not_replace_one_for_every_column():
    texts, others = Finding("a", only_as_text=True), Finding("b", only_as_text=True)
    every, any_column = Finding("c"), Finding("d")
    assert add_findings({}, [("x", texts), ("y", every)]) == {"x": texts, "y": every}
    assert add_findings({"x": texts}, [("x", others)]) == {"x": others}
    assert add_findings({"x": every}, [("x", texts)]) == {"x": every}
    assert add_findings({"x": texts, "y": every}, [("x", every), ("y", any_column), ("y", texts)]) == {
        "x": every,
        "y": any_column,
    }


def test_the_tables_are_long():
    assert len(set(PERSONAL_TEXTS)) + len(PERSONAL_VALUES) >= 150
    assert len(set(OTHER_TEXTS)) + len(OTHER_VALUES) >= 80


@pytest.mark.parametrize("name", [name for name in PERSONAL_TEXTS if not name.isascii()])
def test_accents_make_no_difference(name):
    """Avro's names are ASCII, and those of columns in SQL need not be."""
    field = topic_schema.Field(name, "string", tagged=False)
    assert name in personal_fields("events", "Event", [field])


def record(type_: str, /, **fields) -> dict:
    return {
        "type": "record",
        "name": type_,
        "fields": [{"name": field, "type": kind} for field, kind in fields.items()],
    }


def found(schema: dict, topic: str = "events") -> dict[str, bool]:
    """Return the personal fields, and whether they are personal only as text."""
    return {
        path: finding.only_as_text for path, finding in topic_schema.from_avro(schema, topic).personal.items()
    }


@pytest.mark.parametrize(
    "type_", ["Customer", "UserProfile", "PatientRecord", "com.acme.Passenger", "KundeDaten", "Employee"]
)
def test_the_type_of_a_record_says_that_it_describes_a_person(type_):
    assert found(record("Event", party=record(type_, name="string", region="string"), name="string")) == {
        "party.name": False,
        "party.region": True,
    }


@pytest.mark.parametrize(
    "type_",
    ["Product", "UserStory", "CustomerOrder", "PatientCounter", "Store", "Party", "com.acme.customer.Data"],
)
def test_other_types_of_records_do_not(type_):
    assert found(record("Event", party=record(type_, name="string", region="string"))) == {}


@pytest.mark.parametrize(
    ("topic", "type_"),
    [
        ("customers", "Row"),
        ("crm_contacts_v2", "Value"),
        ("dim_customer", "Envelope"),
        ("events", "User"),
        ("employee_master_data", "Event"),
        ("stammdaten_kunden", "Event"),
        ("user_registrations", "Event"),
    ],
)
def test_a_topic_about_people_is_a_record_about_a_person(topic, type_):
    whole = record(
        type_, name="string", country="string", since="int", product=record("Product", name="string")
    )
    assert found(whole, topic) == {"name": False, "country": True, "product.name": True}


@pytest.mark.parametrize("topic", ["orders", "user_events", "customer_orders", "page_views", "trades"])
def test_texts_of_an_event_with_a_personal_field_stay_usable(topic):
    event = record(
        "Event",
        email="string",
        status="string",
        currency="string",
        deliveryNote="string",
        zip="string",
        city="string",
    )
    assert found(event, topic) == {"email": False, "deliveryNote": True, "zip": True}
    assert found(record("Event", status="string", note="string", zip="string", city="string"), topic) == {}


def test_comments_in_a_list_or_a_map_are_texts_of_the_event_too():
    comments = {"type": "array", "items": "string"}
    event = record("Event", email="string", comments=comments, notes={"type": "map", "values": "string"})
    product = record("Product", note="string")
    event["fields"] += record("Rest", states=comments, product=product)["fields"]
    assert found(event) == {"email": False, "comments[]": True, "notes{}": True}


def test_a_text_in_or_below_a_record_with_a_personal_field_is_personal_as_text():
    item = record("Item", sku="string", amount="int")
    visit = record(
        "Visit", email="string", region="string", seen="int", tags={"type": "array", "items": "string"}
    )
    visit["fields"].append({"name": "items", "type": {"type": "array", "items": item}})
    other = record("Other", region="string")
    assert found(record("Event", visit=visit, other=other, status="string")) == {
        "visit.email": False,
        "visit.region": True,
        "visit.tags[]": True,
        "visit.items[].sku": True,
    }


def test_a_record_that_only_wraps_the_event_is_like_the_event():
    """The envelope of Debezium, for example."""
    after = record("Value", email="string", status="string", comment="string")
    assert found(record("Envelope", op="string", after=after)) == {
        "after.email": False,
        "after.comment": True,
    }


def test_a_record_that_only_wraps_a_person_is_about_that_person():
    after = record("Value", email="string", status="string")
    assert found(record("Envelope", op="string", after=after), "customers") == {
        "after.email": False,
        "after.status": True,
    }


def test_a_record_beside_a_person_has_fields_of_its_own():
    assert found(record("Event", userCode=record("Code", version="string", scheme="string"))) == {}
    assert found(record("Event", userCode="string")) == {"userCode": False}


def test_a_topic_of_addresses_has_places_and_one_of_deliveries_has_events():
    whole = record("Row", city="string", country="string")
    assert found(whole, "addresses") == {"city": False}
    assert found(whole, "shipping") == {}


def test_a_person_with_a_personal_field_further_inside():
    contact = record("Reach", email="string")
    customer = record(
        "Customer", reach=contact, segment="string", kind={"type": "enum", "name": "K", "symbols": ["A"]}
    )
    assert found(record("Event", customer=customer, status="string")) == {
        "customer.reach.email": False,
        "customer.segment": True,
    }


def test_the_reason_is_a_sentence_about_the_field():
    schema = record(
        "Event",
        customer=record("Customer", name="string", region="string"),
        email="string",
        user_id="int",
        account_numbers="int",
        phone_no="int",
    )
    reasons = {
        path: finding.why for path, finding in topic_schema.from_avro(schema, "events").personal.items()
    }
    assert reasons == {
        "phone_no": "its name has the word phone_no",
        "account_numbers": "its name has the word account_number",
        "customer.name": "it is part of customer, which describes a person",
        "customer.region": "it is a text beside customer.name, which is personal, in customer",
        "email": "its name has the word email",
        "user_id": "its name says whose it is",
    }


def test_the_reason_names_what_describes_a_person_or_an_address():
    def explain(schema, topic="events"):
        return {path: finding.why for path, finding in topic_schema.from_avro(schema, topic).personal.items()}

    people = {"type": "array", "items": record("Party", name="string")}
    assert explain(record("Event", guests={"type": "map", "values": people})) == {
        "guests{}[].name": "it is part of guests, which describes a person"
    }
    place = record("Place", city="string", lat="double", country="string")
    assert explain(record("Event", shipTo=place, user="string", tagged="int")) == {
        "shipTo.city": "it is part of shipTo, which describes an address",
        "shipTo.lat": "it is part of shipTo, which describes an address",
        "shipTo.country": "it is a text beside shipTo.city, which is personal, in shipTo",
        "user": "its name is that of a person",
    }
    assert explain(record("Row", name="string", country="string"), "customers") == {
        "name": "it is part of topic customers, which describes a person",
        "country": "it is a text beside name, which is personal, in the record of topic customers",
    }
    tagged = record("Event", code="int")
    tagged["fields"][0]["confluent:tags"] = ["PII"]
    assert explain(tagged) == {"code": "it has the tag PII"}


def test_the_name_of_a_union_is_that_of_its_values():
    buyer = ["null", record("Retail", name="string", id="int"), record("Firm", title="string")]
    whole = record(
        "Event",
        customer=["null", "string", "long"],
        sellers=["string", {"type": "array", "items": "string"}],
        visitors=["long", {"type": "array", "items": record("Party", name="string")}],
        buyers={"type": "array", "items": buyer},
        address=["null", record("German", city="string"), record("American", city="string")],
        note=["null", "string", "long"],
        status=["null", "string", "long"],
    )
    assert found(whole).keys() == {
        "customer.string",
        *("sellers.array[]", "visitors.array[].name"),
        "buyers[].Retail.name",
        "buyers[].Retail.id",
        *("address", "address.German", "address.German.city", "address.American", "address.American.city"),
        *("note.string", "sellers.string"),
    }
