"""Texts as words: where statements are cut, where words begin, and what may be a name."""

import pytest

from cube.refusals import InvalidSql, TooLarge
from planner.sql.words import (
    FILE,
    N_SETTINGS_MAX,
    N_WORDS_MAX,
    WordReader,
    is_name,
    is_quoted,
    keyword,
    worded_statements,
)


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("SELECT 1", ["SELECT 1"]),
        (" /* a */ SELECT 1 ; -- b", [" /* a */ SELECT 1 ; -- b"]),
        ("SELECT ';' ;; /* ; */ SELECT 2", ["SELECT ';'", "SELECT 2"]),
        ("a; $$;$$; $t$;$t$; E'\\';'; \";\"", ["a", "$$;$$", "$t$;$t$", "E'\\';'", '";"']),
        ("SHOW x; EXECUTE a; FETCH b; c", ["SHOW x", "EXECUTE a", "FETCH b", "c"]),
        (" ;; -- nothing", []),
    ],
)
def test_texts_are_cut_at_semicolons_outside_quotes_and_comments(
    sql: str, texts: list[str]
) -> None:
    found = worded_statements(sql)
    assert [one.text for one in found] == texts
    for one in found:
        assert sql[one.start :].startswith(one.text)


def test_words_know_their_places_in_their_statement() -> None:
    _, second = worded_statements("SELECT $1,\n 2;\n\n SELECT\n  'a\nb', c")
    assert [(word.text, word.line, word.col) for word in second.words] == [
        ("SELECT", 1, 1),
        ("a\nb", 2, 3),
        (",", 3, 3),
        ("c", 3, 5),
    ]
    for word in second.words:
        assert word.text in second.text[word.start : word.end + 1]


@pytest.mark.parametrize("sql", ["'open", '"open', "/* open", "SELECT $a$ open", "SET x = E'\\'"])
def test_what_is_left_open_is_refused(sql: str) -> None:
    with pytest.raises(InvalidSql, match="cannot be split into words"):
        worded_statements(sql)


def test_what_is_too_much_is_refused() -> None:
    for sql in ("SELECT 1;" * (N_SETTINGS_MAX + 2), "a " * (N_WORDS_MAX + 1)):
        with pytest.raises(TooLarge):
            worded_statements(sql)
    assert len(worded_statements("SELECT 1;" * FILE.n_statements, FILE)) == FILE.n_statements


def test_quotes_make_a_word_no_keyword() -> None:
    (one,) = worded_statements("set \"set\" 'set' N'set' $$set$$ 1 + é_1")
    assert [keyword(word) for word in one.words] == ["SET", "", "", "", "", "1", "+", "É_1"]
    assert [is_quoted(word) for word in one.words] == [False, *[True] * 4, *[False] * 3]
    assert [is_name(word) for word in one.words] == [True, True, *[False] * 5, True]


@pytest.mark.parametrize("sql", ["a IN ($1,$23) AND $2", "$1+$23-$2", "$t$ $9 $t$, $1;$23;$2"])
def test_numbered_parameters_are_two_words_wherever_they_stand(sql: str) -> None:
    words = [word for one in worded_statements(sql) for word in one.words]
    signs = [place for place, word in enumerate(words) if word.text == "$"]
    assert [words[place + 1].text for place in signs] == ["1", "23", "2"]


def test_words_are_read_from_the_first_to_the_last() -> None:
    (one,) = worded_statements("if Exists x")
    reader = WordReader(one.words)
    assert not reader.passed("IF", "NOT")
    assert reader.passed("IF", "EXISTS")
    assert [word.text for word in reader.rest] == ["x"]
    word = reader.ahead
    assert word is not None
    assert word.text == "x"
    assert reader.next_word() is word is reader.latest
    assert reader.next_word() is reader.ahead is None
    assert reader.latest is word
    assert not reader.passed("X")
