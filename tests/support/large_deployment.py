"""The largest deployment file that the documentation promises: a hundred tables, also in Snowflake, and fifty
exports.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import shipped

ROOT = Path(__file__).resolve().parents[2]
TABLES = 100
EXPORTS = 50
TRADES = {
    "type": "record",
    "name": "Trade",
    "fields": [
        *({"name": name, "type": "string"} for name in ("side", "symbol", "account", "userid")),
        *({"name": name, "type": "int"} for name in ("quantity", "price")),
    ],
}


def write(root: Path, tables: int = TABLES) -> str:
    """Write the schema and the contracts below `root`, and return the deployment file: dev.toml with these
    lists. Files with more tables can't be deployed.
    """
    for name in ("topics", "exports", "flink"):
        (root / name).mkdir(exist_ok=True)
    (root / "topics" / "stock_trades.avsc").write_text(json.dumps(TRADES))
    contract = (ROOT / "project" / "exports" / "daily_trades.toml").read_text()
    dev = shipped.read("dev")
    parts = [dev.partition("[[topics]]")[0].replace('stage = "dev"', 'stage = "large"')]
    for number in range(tables):
        name = f"orders_of_the_region_{number:03}"
        shown = f'[topics.tableflow]\nsnowflake_table = "{name}"\n'
        parts.append(f'[[topics]]\nname = "{name}"\nschema = "topics/stock_trades.avsc"\n{shown}')
    for number in range(EXPORTS):
        name = f"daily_file_of_the_region_{number:03}"
        text = contract.replace('name = "daily_trades"', f'name = "{name}"')
        text = text.replace('topic = "stock_trades"', f'topic = "orders_of_the_region_{number:03}"')
        (root / "exports" / f"{name}.toml").write_text(text)
        parts.append(
            f'[[exports]]\ncontract = "{name}"\ncron = "0 6,14 * * ? *"\nzone = "UTC"\nrecipients = '
            '["a@example.com"]\n'
        )
    parts += ["[snowflake]" + dev.partition("[snowflake]")[2].partition("[rotation]")[0]]
    parts += ["[alerts]" + dev.partition("[alerts]")[2]]
    return "\n".join(parts)
