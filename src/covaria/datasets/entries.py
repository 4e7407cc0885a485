"""What is known of each table: where it comes from, under what terms, and what it must hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Entry:
    """One table: its origin and licence, the file it must be, and its size once cleaned.

    `member` names the file inside a zip. `columns` are those kept of a larger table, which alone
    are ever written to disk. `in_time`: the rows are hours, one after the other. `of_place` are
    columns that tell the place of a row: rows that agree on them come from the same one. `limit` is
    the most bytes a download may have.
    """

    name: str
    file: str
    sha256: str
    url: str
    origin: str
    licence: str
    target: str
    n_rows: int
    n_columns: int
    paper_rows: int
    member: str = ""
    columns: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    in_time: bool = False
    of_place: tuple[str, ...] = ()
    limit: int = 5 * MEGABYTE
    note: str = ""


def _github(repository: str, commit: str, path: str) -> str:
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{quote(path)}"


_UCI = "https://archive.ics.uci.edu/static/public"

_ALL = (
    Entry(
        name="airbnb_quebec",
        file="airbnb_quebec.csv",
        sha256="83748aa2fb110e68d416b5d0b056f66f68ad1806da6bb8bdabc01b76ee55b630",
        url=_github(
            "dbdesign-students-spring2024/6-mongodb-analysis-anyuchenn",
            "7666b6334a9c95067600732b6e9ce0033f9febba",
            "data/listings.csv",
        ),
        origin="Inside Airbnb, Quebec City, scrape of 13 December 2023",
        licence="CC BY 4.0 (as quoted by users of Inside Airbnb)",
        target="log_price",
        n_rows=1906,
        n_columns=11,
        paper_rows=1863,
        columns=(
            "latitude",
            "longitude",
            "room_type",
            "price",
            "minimum_nights",
            "number_of_reviews",
            "reviews_per_month",
            "calculated_host_listings_count",
            "availability_365",
            "number_of_reviews_ltm",
        ),
        groups={
            "room_type": (
                "room_type_Hotel room",
                "room_type_Private room",
                "room_type_Shared room",
            )
        },
        limit=60 * MEGABYTE,
        note="not the paper's file: the same city and columns, another date (paper: June 2026)",
    ),
    Entry(
        name="social_media",
        file="social_media.csv",
        sha256="f4bd0ebc5a111309f354486c3eea9eb0dca9bbea96723bf4a3af2aec9bba94bb",
        url=_github(
            "peuinacio/Social-Media-Addiction-vs-Productivity",
            "95fc25609d15d8dbf892037bc74c3d69274a4694",
            "dataset/social_media_productivity_6000.csv",
        ),
        origin="Kaggle, social media addiction vs productivity (Asif Zaman, 2026)",
        licence="CC0-1.0 (of the repository; Kaggle's not seen)",
        target="productivity_score",
        n_rows=4999,
        n_columns=8,
        paper_rows=4999,
        note="addiction_level is coded Low 0, Medium 1, High 2: the paper does not say how",
    ),
    Entry(
        name="wine_red",
        file="wine_red.csv",
        sha256="4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
        url=f"{_UCI}/186/wine+quality.zip",
        member="winequality-red.csv",
        origin="UCI, Wine Quality, red (Cortez et al. 2009), doi 10.24432/C56S3T",
        licence="CC BY 4.0",
        target="quality",
        n_rows=1599,
        n_columns=11,
        paper_rows=1599,
        note="240 rows are copies of others; they are part of the paper's n",
    ),
    Entry(
        name="boston",
        file="boston.csv",
        sha256="ab16ba38fbbbbcc69fe930aab1293104f1442c8279c130d9eba03dd864bef675",
        url=_github(
            "selva86/datasets", "c943fa8851270387c44d26efb0f9c0aac1559e11", "BostonHousing.csv"
        ),
        origin="Harrison and Rubinfeld 1978, as R's mlbench::BostonHousing",
        licence="none stated",
        target="medv",
        n_rows=506,
        n_columns=13,
        paper_rows=506,
        of_place=("zn", "indus", "rad", "tax", "ptratio"),
        note="its column b transforms the share of Black residents: for methods, not for policy",
    ),
    Entry(
        name="crab_age",
        file="crab_age.csv",
        sha256="0176de43cc7e7f083b30f42b858167d493cd6985af1dfbffbbd3e30e47ce608d",
        url=_github(
            "samitxb/CrabAgePrediction_MachineLearning", "00172ce", "CrabAgePrediction.csv"
        ),
        origin="Kaggle, crab age prediction (Gursewak Singh Sidhu, 2021)",
        licence="none stated",
        target="Age",
        n_rows=3893,
        n_columns=9,
        paper_rows=3893,
        groups={"Sex": ("Sex_I", "Sex_M")},
        note="two dummies for Sex, female the reference",
    ),
    Entry(
        name="gas_turbine_2013",
        file="gas_turbine_2013.csv",
        sha256="13c437bb440ec2045bd12057e6654c41dd4107a661eac16ba2e878e897a08f9e",
        url=f"{_UCI}/551/gas+turbine+co+and+nox+emission+data+set.zip",
        member="gt_2013.csv",
        origin="UCI, Gas Turbine CO and NOx Emission (id 551), year 2013, doi 10.24432/C5WC95",
        licence="CC BY 4.0",
        target="NOX",
        n_rows=7152,
        n_columns=9,
        paper_rows=7152,
        in_time=True,
        limit=20 * MEGABYTE,
        note="CO, the other pollutant, is left out",
    ),
)
ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}
ALIASES = {"wine": "wine_red", "airbnb": "airbnb_quebec", "crab": "crab_age",
           "gas_turbine": "gas_turbine_2013", "social": "social_media"}  # fmt: skip
