"""Write what describes a file of rows, beside it: the data dictionary and the report."""

from __future__ import annotations

import hashlib
import json

from glue_jobs.delivery import datapackage, report
from glue_jobs.delivery.manifest import File, WindowResult
from glue_jobs.delivery.publish import WindowLocation


def write_descriptions(location: WindowLocation, result: WindowResult) -> list[File]:
    """Write the data dictionary and the report."""
    package = json.dumps(datapackage.build_data_package(result), indent=2, ensure_ascii=False).encode()
    page = report.render_html(result).encode()
    folder = location.run_folder(result.run_id)
    return [
        _write_file(location, "datapackage", f"{folder}datapackage.json", package, "application/json"),
        _write_file(location, "report", f"{folder}report.html", page, "text/html; charset=utf-8"),
    ]


def _write_file(location: WindowLocation, role: str, key: str, content: bytes, content_type: str) -> File:
    location.bucket.write(key, content, content_type)
    return File(role, location.bucket.key(key), len(content), hashlib.sha256(content).hexdigest())
