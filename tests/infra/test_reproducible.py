"""The same deployment file gives the same templates: they contain no time, no random value and no order of a
set.
"""

from __future__ import annotations

from tests.support import assembly_kit, shipped


def test_the_same_file_gives_the_same_templates(assemblies, tmp_path_factory):
    again = assembly_kit.synthesise(shipped.load("dev"), tmp_path_factory.mktemp("again"))
    assert again.templates == assemblies["dev"].templates
