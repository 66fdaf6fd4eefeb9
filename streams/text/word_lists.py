"""Words that tell numbers, dates, units and negations: English, German, French, Spanish, Portuguese, Italian.

Negations are Dutch, Scandinavian and Polish as well.

Small words that are something else in another of these languages stand in `AMBIGUOUS_WORDS`: for comparing two texts
they count, because a false alarm costs no more than a question; for refusing a text they do not.
"""

# ruff: noqa: SIM905 -- a list of words is best read as words

from collections.abc import Mapping
from typing import Final


def _table(rows: Mapping[str, str]) -> dict[str, str]:
    return {word: meaning for meaning, words in rows.items() for word in words.split()}


ONES: Final = _table(
    {
        "0": "zero null zéro cero",
        "1": "one eins uno",
        "2": "two zwei deux dos dois duas due both beide beiden ambos ambas entrambi entrambe",
        "3": "three drei trois tres três tre",
        "4": "four vier quatre cuatro quatro quattro",
        "5": "five fünf cinq cinco cinque",
        "6": "six sechs seis sei",
        "7": "seven sieben sept siete sete sette",
        "8": "eight acht huit ocho oito otto",
        "9": "nine neun neuf nueve nove",
    }
)
TENS: Final = _table(
    {
        "20": "twenty zwanzig vingt veinte vinte venti",
        "30": "thirty dreißig dreissig trente treinta trinta trenta",
        "40": "forty vierzig quarante cuarenta quarenta quaranta",
        "50": "fifty fünfzig cinquante cincuenta cinquenta cinquanta",
        "60": "sixty sechzig soixante sesenta sessenta sessanta",
        "70": "seventy siebzig septante setenta settanta",
        "80": "eighty achtzig octante ochenta oitenta ottanta",
        "90": "ninety neunzig nonante noventa novanta",
    }
)
NUMBERS: Final = (
    ONES
    | TENS
    | _table(
        {
            "10": "ten zehn dix diez dez dieci",
            "11": "eleven elf onze once undici",
            "12": "twelve zwölf douze doce doze dodici dozen dutzend",
            "13": "thirteen dreizehn treize trece treze tredici",
            "14": "fourteen vierzehn quatorze catorce catorze quattordici",
            "15": "fifteen fünfzehn quinze quince quindici",
            "16": "sixteen sechzehn seize dieciséis dezesseis dezasseis sedici",
            "17": "seventeen siebzehn diecisiete dezessete dezassete diciassette",
            "18": "eighteen achtzehn dieciocho dezoito diciotto",
            "19": "nineteen neunzehn diecinueve dezenove dezanove diciannove",
            "100": "hundred hundert cent cien ciento cem cento",
            "1000": "thousand tausend mille mil mila",
            "1000000": "million millionen millón millones milhão milhões milione milioni",
            "½": "half halb halbe halber halben demi demie medio media meio meia mezzo mezza",
            "1st": "first erste erster ersten premier première primero primera primeiro primeira primo prima",
            "2nd": "second zweite zweiter zweiten deuxième segundo segunda secondo seconda",
            "3rd": "third dritte dritter dritten troisième tercero tercera terceiro terceira terzo terza",
            "1 time": "einmal",
            "2 times": "twice zweimal",
            "3 times": "thrice dreimal",
        }
    )
)

_MONTHS = {
    "month 1": "january jan januar jänner janvier enero janeiro gennaio",
    "month 2": "february feb februar février febrero fevereiro febbraio",
    "month 3": "march mar märz mars marzo março",
    "month 4": "april apr avril abril aprile",
    "month 5": "may mai mayo maio maggio",
    "month 6": "june jun juni juin junio junho giugno",
    "month 7": "july jul juli juillet julio julho luglio",
    "month 8": "august aug août agosto",
    "month 9": "september sep sept septembre septiembre setembro settembre",
    "month 10": "october oct okt oktober octobre octubre outubro ottobre",
    "month 11": "november nov novembre noviembre novembro",
    "month 12": "december dec dez dezember décembre diciembre dezembro dicembre",
}
_WEEKDAYS = {
    "weekday 1": "monday mondays mon montag montags lundi lunes segunda lunedì",
    "weekday 2": "tuesday tuesdays tue dienstag dienstags mardi martes terça martedì",
    "weekday 3": "wednesday wednesdays wed mittwoch mittwochs mercredi miércoles quarta mercoledì",
    "weekday 4": "thursday thursdays thu donnerstag donnerstags jeudi jueves quinta giovedì",
    "weekday 5": "friday fridays fri freitag freitags vendredi viernes sexta venerdì",
    "weekday 6": "saturday saturdays sat samstag samstags sonnabend samedi sábado sábados sabato",
    "weekday 7": "sunday sundays sun sonntag sonntags dimanche domingo domingos domenica",
}
_TIMES = {
    "today": "today heute hoje hoy oggi",
    "tomorrow": "tomorrow morgen demain mañana amanhã domani",
    "yesterday": "yesterday gestern hier ayer ontem ieri",
    "morning": "morning mornings morgens vormittag matin manhã mattina mattino am",
    "afternoon": "afternoon afternoons nachmittag nachmittags après tarde pomeriggio pm",
    "evening": "evening evenings abend abends soir sera",
    "night": "night nights nacht nachts nuit noche noite notte tonight",
    "noon": "noon mittag mittags midi mediodía mezzogiorno",
    "midnight": "midnight mitternacht minuit medianoche mezzanotte",
    "weekend": "weekend weekends wochenende wochenenden",
    "spring": "spring frühling frühjahr printemps primavera",
    "summer": "summer sommer été verano verão estate",
    "autumn": "autumn fall herbst automne otoño outono autunno",
    "winter": "winter hiver invierno inverno",
}
DATES: Final = _table(_MONTHS | _WEEKDAYS | _TIMES)

UNITS: Final = _table(
    {
        "km": "km kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros quilômetro"
        " quilômetros chilometro chilometri",
        "m": "metre metres meter meters mètre mètres metro metros metri",
        "cm": "cm centimetre centimetres centimeter centimeters zentimeter centimètres centímetros centimetri",
        "mm": "mm millimetre millimetres millimeter millimeters",
        "mile": "mile miles mi meile meilen milla millas milha milhas miglio miglia",
        "foot": "foot feet ft fuß",
        "inch": "inch inches zoll",
        "kg": "kg kilo kilos kilogram kilograms kilogramm chili",
        "g": "gram grams gramm gramme grammes gramo gramos grama gramas grammo grammi",
        "pound": "pound pounds lb lbs gbp pfund livre livres libra libras sterlina sterline £",
        "ounce": "ounce ounces oz",
        "litre": "litre litres liter liters litro litros litri",
        "celsius": "celsius °c",
        "fahrenheit": "fahrenheit °f",
        "euro": "euro euros eur €",
        "dollar": "dollar dollars usd dólar dólares dollari dollaro $",
        "franc": "franc francs franken chf",
        "yen": "yen jpy ¥",
        "percent": "percent prozent pourcent por100 %",
        "second": "seconds sekunde sekunden secondes segundos secondi",
        "minute": "minute minutes min mins minuten minuto minutos minuti",
        "hour": "hour hours hr hrs stunde stunden heure heures hora horas ora ore",
        "day": "day days tag tage tagen jour jours día días dia dias giorno giorni",
        "week": "week weeks weekly woche wochen semaine semaines semana semanas settimana settimane",
        "month": "month months monthly monat monate monaten mois mes meses mês mese mesi",
        "year": "year years yearly jahr jahre jahren an ans année années año años ano anos anno anni",
        "kb": "kb kilobyte kilobytes",
        "mb": "mb megabyte megabytes",
        "gb": "gb gigabyte gigabytes",
        "tb": "tb terabyte terabytes",
        "mg": "mg milligram milligrams milligramm",
        "ml": "ml millilitre millilitres milliliter milliliters",
        "kcal": "kcal calorie calories kalorien",
    }
)

NEGATIONS: Final = frozenset(
    (
        "not no never none nobody nothing nowhere neither nor without cannot dont doesnt didnt isnt arent wasnt cant"
        " wont nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden nichts nirgends ohne"
        " weder nimmer ne pas jamais rien aucun aucune sans ni personne"
        " nunca jamás nada nadie ningún ninguno ninguna sin tampoco"
        " não nao jamais ninguém nenhum nenhuma sem nem tampouco"
        " non mai niente nulla nessuno nessuna nessun senza né neanche nemmeno neppure"
        " hardly barely scarcely rarely seldom kaum selten rarement rara raramente"
        " niet geen nooit niets zonder inte ingen inget inga aldrig utan ikke aldri uten uden bez nigdy"
    ).split()
)

AMBIGUOUS_WORDS: Final = frozenset(
    (
        "null one both due sei sept six once elf cent mil mille mila quince seize media half demi medio meio meia mezzo"
        " first second third primo prima segunda segundo secondo seconda premier primera primeira erste erster ersten"
        " nove sete sette tre dos dez onze"
        " may march mar mars mai jan jun jul sep sun sat mon wed terça quarta quinta sexta hier morgen am pm été estate"
        " fall spring sera tarde après"
        " ni mai personne nada sin non sem plus rara"
    ).split()
)

SENTENCE_STARTERS: Final = frozenset(
    (
        "a an the this that these those he she it they we you i my his her its their our your there here who what when"
        " where if as at by for from in into of on since until to with after before during every each all both some"
        " many most and but or so yes now then today tomorrow yesterday currently recently usually sometimes always"
        " often formerly previously no not never nobody nothing once user users assistant someone"
        " der die das ein eine einer ich du er sie es wir ihr mein meine sein seine ihre dieser diese dieses im am"
        " in an auf bei mit nach seit von vor zu und aber oder wenn als jetzt heute früher kein keine"
        " nutzer nutzerin benutzer"
        " le la les un une des je tu il elle on nous vous ils elles mon ma mes son sa ses ce cette ces dans en sur chez"
        " avec depuis pour de du au aux et mais ou quand si maintenant utilisateur utilisatrice"
        " el los las una unos yo él ella nosotros mi su sus este esta estos en con desde para por y pero o cuando"
        " ahora usuario usuaria"
        " o os as um uma eu ele ela nós meu minha seu sua este esta no na em com desde para por e mas ou quando agora"
        " não usuário usuária utilizador"
        " il lo gli i uno io lui lei noi mio mia suo sua questo questa nel nella in con da per di e ma se quando ora"
        " non utente"
    ).split()
)
"""Words that begin a sentence and are no names."""
