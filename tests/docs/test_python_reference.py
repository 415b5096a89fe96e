"""The pages of the Python packages list every module, and what each defines for others."""

from pathlib import Path

from docs.python_reference import write_python_reference


def test_a_folder_has_a_page_with_its_modules(tmp_path: Path) -> None:
    inner = tmp_path / "shop" / "till"
    inner.mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").write_text('"""A shop."""\n')
    (tmp_path / "shop" / "goods.py").write_text("import os\nclass Good: ...\nclass _Hidden: ...\n")
    (inner / "__init__.py").write_text('"""Its till."""\n')
    (inner / "constants.py").write_text("LIMIT = 3\n")
    write_python_reference(tmp_path, ("shop",), tmp_path / "pages")
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {
        "index.rst",
        "shop.rst",
        "shop.till.rst",
    }
    assert "   shop\n   shop.till\n" in (tmp_path / "pages" / "index.rst").read_text()
    page = (tmp_path / "pages" / "shop.rst").read_text()
    assert ".. automodule:: shop\n   :no-members:\n" in page
    assert ".. automodule:: shop.goods\n   :members: Good\n" in page
    constants = (tmp_path / "pages" / "shop.till.rst").read_text()
    assert ".. automodule:: shop.till.constants\n   :no-members:\n" in constants
