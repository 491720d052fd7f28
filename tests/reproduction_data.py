"""Small synthetic files in the formats of the paper's two data sets, for machines that do not have those."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np

BIKE_HEADER = (
    "instant,dteday,season,yr,mnth,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed,casual,registered,cnt"
)


def bike_lines(n: int = 240) -> list[str]:
    rng = np.random.default_rng(11)
    lines = [BIKE_HEADER]
    for i in range(n):
        day = date(2011, 1, 1) + timedelta(days=3 * i)
        weekday = (day.weekday() + 1) % 7
        weather = int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
        warmth = 0.5 - 0.35 * np.cos(2 * np.pi * day.timetuple().tm_yday / 365) + 0.05 * rng.normal()
        temp = float(np.clip(warmth, 0.05, 0.95))
        working = int(0 < weekday < 6)
        level = 4000 * temp * (1.3 - 0.3 * weather) * rng.lognormal(0, 0.25)
        casual = int(level * (0.15 if working else 0.4))
        registered = int(level) + 20
        numbers = [temp, min(1.0, temp + 0.01), float(rng.uniform(0.3, 0.9)), float(rng.uniform(0.05, 0.4))]
        fields = [i + 1, day.isoformat(), day.month % 12 // 3 + 1, int(day.year > 2011), day.month, 0, weekday]
        fields += [working, weather, *(f"{number:.6f}" for number in numbers)]
        lines.append(",".join(map(str, [*fields, casual, registered, casual + registered])))
    return lines


def housing_lines(n: int = 500) -> list[str]:
    rng = np.random.default_rng(12)
    lines = []
    for _ in range(n):
        income = float(rng.gamma(4, 1)) + 0.5
        homes = int(rng.integers(50, 900))
        rooms, bedrooms = int(homes * rng.uniform(3, 7)), int(homes * rng.uniform(0.9, 1.2)) + 1
        people = int(homes * rng.uniform(1.5, 4)) + 1
        value = float(np.clip(15_000 + 45_000 * income * rng.lognormal(0, 0.3), 15_000, 500_001))
        place = [rng.uniform(-124, -115), rng.uniform(33, 41), rng.integers(1, 52)]
        fields = [*place, rooms, bedrooms, people, homes, income, value]
        lines.append(",".join(f"{float(field):.6f}" for field in fields))
    return lines


def write_stand_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bike_sharing_day.csv").write_text("\n".join(bike_lines()) + "\n", encoding="utf-8")
    (folder / "cal_housing.data").write_text("\n".join(housing_lines()) + "\n", encoding="utf-8")
    return folder
