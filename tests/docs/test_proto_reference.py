"""The protocol's page leaves out no call, message or field of the compiled protocol."""

from pathlib import Path

import pytest

from docs.proto_reference import reference_page
from proxy.protocol import tacit_pb2

PROTO = Path(__file__).resolve().parents[2] / "proxy" / "protocol" / "tacit.proto"
PAGE = reference_page(PROTO.read_text(encoding="utf-8"))
SMALL = """\
// What it is for.
syntax = "proto3";
package small.v1;
service Small {
  // Answers.
  rpc Ask(Question) returns (stream Reply);
}
// What is asked.
message Question {
  // In SQL.
  optional string sql = 1;
}
message Reply {}
"""


def section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", tacit_pb2.DESCRIPTOR.message_types_by_name)
def test_every_field_of_a_message_is_on_the_page(name: str) -> None:
    described = tacit_pb2.DESCRIPTOR.message_types_by_name[name]
    for field in described.fields:
        assert f"| {field.number} | `{field.name}` | " in section(name)
    assert section(name).count("\n| ") == (len(described.fields) + 1 if described.fields else 0)


def test_every_call_is_on_the_page() -> None:
    service = tacit_pb2.DESCRIPTOR.services_by_name["Tacit"]
    for method in service.methods:
        assert f"\n### {method.name}\n" in section("Service Tacit")
        assert f"[{method.input_type.name}](#{method.input_type.name.lower()})" in PAGE


def test_comments_stand_beside_what_they_are_about() -> None:
    page = reference_page(SMALL)
    assert "What it is for." in page
    assert "### Ask\n\nAnswers.\n\n[Question](#question) → stream of [Reply](#reply)\n" in page
    assert "## Question\n\nWhat is asked.\n" in page
    assert "| 1 | `sql` | optional `string` | In SQL. |" in page
    assert "## Reply\n\n\n\nNo fields.\n" in page


def test_what_is_not_understood_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="line 9 is not understood"):
        reference_page(SMALL.replace("message Question", "enum Colour"))
