package rules_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/rules"
)

// TestReplaceReads: every way to read a field is found with its whole text, and nothing else.
func TestReplaceReads(t *testing.T) {
	t.Parallel()
	env := must.Get(rules.NewEnv(rules.EnvOptions{})).In(t)
	for _, row := range []struct{ reason, expr, want, err string }{
		{"one field", "self.spec.host", "<spec.host>", ""},
		{"a method of it", "self.spec.host.split(':')[0]", "<spec.host>.split(':')[0]", ""},
		{"several, on several lines", "self.spec\n  .host + ':' +\nstring( self . spec . port )",
			"<spec.host> + ':' +\nstring( <spec.port> )", ""},
		{"is it there", "has(self.spec.host) ? self.spec.host : 'é'", "<has spec.host> ? <spec.host> : 'é'", ""},
		{"with room", "!has ( self.spec.host ) || true", "!<has spec.host> || true", ""},
		{"after what is no ASCII", "'héé' + self.spec.a", "'héé' + <spec.a>", ""},
		{"an optional", "self.spec.?zone.orValue('UTC')", "<? spec.zone>.orValue('UTC')", ""},
		{"one inside of one", "self.?spec.zone.orValue('UTC')", "<?? spec.zone>.orValue('UTC')", ""},
		{"in a macro", "self.spec.l.map(x, x.self + self.spec.a)", "<spec.l>.map(x, x.self + <spec.a>)", ""},
		{"in a text", "'self.spec.a' + self.spec.a", "'self.spec.a' + <spec.a>", ""},
		{"an escaped name", "self.spec.a__dash__b", "<spec.a-b>", ""},
		{"all of it", "self", "<>", ""},
		{"an index", "self.spec['a']", "<spec>['a']", ""},
		{"none", "1 + 1", "1 + 1", ""},
		{"a variable of that name", "[1].map(self, self + 1)", "", "a variable of a macro is called self"},
		{"no expression", "self.", "", "1:6"},
		{"one that has no replacement", "self.no", "", "not this one"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			got, err := env.ReplaceReads(row.expr, func(r rules.FieldRead) (string, error) {
				if len(r.Path) > 0 && r.Path[0] == "no" {
					return "", errors.New("not this one")
				}
				form := map[bool]string{true: "has "}[r.Has] + map[bool]string{true: "?"}[r.FirstOptional] + map[bool]string{true: "? "}[r.Optional]
				return fmt.Sprintf("<%s%s>", form, strings.Join(r.Path, ".")), nil
			})
			if got != row.want || (err == nil) != (row.err == "") || (err != nil && !strings.Contains(err.Error(), row.err)) {
				t.Errorf("%q, %v; want %q, %q", got, err, row.want, row.err)
			}
		})
	}
}
