package sqltext_test

import (
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/pkg/sqltext"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ reason, text, want, names string }{
		{"parameters are numbered in the order of their first use", "UPDATE a SET b = $b, c = $c, d = $b WHERE id = $id",
			"UPDATE a SET b = ?1, c = ?2, d = ?1 WHERE id = ?3", "b c id"},
		{"text is not read", "UPDATE a SET b = 'it''s $c' WHERE id = $id", "UPDATE a SET b = 'it''s $c' WHERE id = ?1", "id"},
		{"a backslash is a byte", `UPDATE a SET b = '\' WHERE id = $id`, `UPDATE a SET b = '\' WHERE id = ?1`, "id"},
		{"but in text that is marked with E", `UPDATE a SET b = E'\'$c' WHERE id = $id`, `UPDATE a SET b = E'\'$c' WHERE id = ?1`, "id"},
		{"a name that ends with e is not that mark", `UPDATE a SET type'\' WHERE id = $id`, `UPDATE a SET type'\' WHERE id = ?1`, "id"},
		{"quoted names", "UPDATE \"$a\" SET `$b` = $c", "UPDATE \"$a\" SET `$b` = ?1", "c"},
		{"comments", "UPDATE a -- $x\nSET /* $y */ b = $c", "UPDATE a -- $x\nSET /* $y */ b = ?1", "c"},
		{"text between dollars", "UPDATE a SET b = $$it's $c$$, d = $x$ $$ $x$ || $e", "UPDATE a SET b = $$it's $c$$, d = $x$ $$ $x$ || ?1", "e"},
		{"a dollar in a name", "UPDATE a$b SET c = $c", "UPDATE a$b SET c = ?1", "c"},
		{"a cast", "UPDATE a SET b = $b::text", "UPDATE a SET b = ?1::text", "b"},
		{"a semicolon at the end", "UPDATE a SET b = $b; \n", "UPDATE a SET b = ?1", "b"},
		{"comments after it", "UPDATE a SET b = $b; -- $c;\n;/* ; */", "UPDATE a SET b = ?1", "b"},
		{"comments before the first word", "-- $x\n/*/ DELETE */ UPDATE a SET b = $b", "-- $x\n/*/ DELETE */ UPDATE a SET b = ?1", "b"},
	} {
		s, err := sqltext.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if got, names := s.Numbered("?"), strings.Join(s.Names(), " "); got != c.want || names != c.names {
			t.Errorf("%s: got %s (%s)", c.reason, got, names)
		}
		if s.Verb() != "UPDATE" {
			t.Errorf("%s: verb %s", c.reason, s.Verb())
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"UPDATE a SET b = $1", "$1 is not a parameter: parameters have names, such as $id"},
		{"UPDATE a SET b = $", "$ is not a parameter"},
		{"UPDATE a SET b = 'c", "'c has no end '"},
		{`UPDATE a SET b = E'c\'`, "has no end '"},
		{"UPDATE a SET b = $x$ c", "$x$ c has no end $x$"},
		{"UPDATE a /* b", "/* b has no end */"},
		{"UPDATE a /* b /* c */ d */", "a comment is within a comment"},
		{"UPDATE a SET b = 1; DELETE FROM a", "it is more than one statement"},
		{"UPDATE a SET b = 1; -- c\nDELETE FROM a", "it is more than one statement"},
		{"UPDATE a SET b = 1; 'c", "it is more than one statement"},
		{"UPDATE a SET b = 1; /* c", "/* c has no end */"},
	} {
		if _, err := sqltext.Parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func TestQuery(t *testing.T) {
	for _, c := range []struct{ reason, text, want, err string }{
		{"nothing follows", "SELECT 1", "SELECT 1", ""},
		{"a semicolon", "SELECT 1;", "SELECT 1", ""},
		{"several", "SELECT 1 ; ;\n", "SELECT 1 ", ""},
		{"a comment", "SELECT 1 -- c", "SELECT 1 -- c", ""},
		{"a comment with a semicolon", "SELECT 1 -- c;\n", "SELECT 1 -- c;\n", ""},
		{"a semicolon and a comment", "SELECT 1; -- c", "SELECT 1", ""},
		{"a comment and a semicolon", "SELECT 1 /* c */ ; /* d */", "SELECT 1 /* c */ ", ""},
		{"comments and semicolons", "SELECT 1; -- c\n/* ; */; -- d\r\n", "SELECT 1", ""},
		{"a comment at the beginning", "/* c */ SELECT 1; --", "/* c */ SELECT 1", ""},
		{"text", "SELECT '; --'; --", "SELECT '; --'", ""},
		{"a comment in a comment, which ends with SQLite and not with PostgreSQL", "SELECT 1 /* /* */", "", "a comment is within a comment"},
		{"the other way around", "SELECT 1; /* /* */ */", "", "a comment is within a comment"},
		{"a comment without an end", "SELECT 1; /* c", "", "/* c has no end */"},
		{"a second statement", "SELECT 1; /* c */ DELETE FROM a", "", "it is more than one statement"},
		{"a parameter", "SELECT $id", "", "it has the parameter $id, and there is no value for one"},
		{"no statement", " -- SELECT 1\n;", "", "it is empty"},
	} {
		got, err := sqltext.Query(c.text)
		if got != c.want || c.err == "" && err != nil || c.err != "" && (err == nil || err.Error() != c.err) {
			t.Errorf("%s: got %q, %v", c.reason, got, err)
		}
	}
}

// Whatever is in a statement, its text is kept but for the parameters.
func FuzzParse(f *testing.F) {
	f.Add("UPDATE a SET b = $b WHERE id = $id -- $x")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := sqltext.Parse(text)
		if err != nil {
			return
		}
		if len(s.Names()) == 0 && s.Numbered("?") != text && s.Numbered("?")+";" != strings.TrimSpace(text) &&
			!strings.HasPrefix(text, s.Numbered("?")+";") {
			t.Errorf("%q became %q", text, s.Numbered("?"))
		}
	})
}
