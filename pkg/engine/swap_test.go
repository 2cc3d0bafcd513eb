package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestNamesAreNotSwapped: upstreams that take over each other's names are in Conflict and keep their objects, over a restart too. They swap
// their names by a free one in between; their values go with them.
func TestNamesAreNotSwapped(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := generatedConfig(t, ns, name)
		r := start(t, testkit.Config(t), conf).ready()
		some := func(value string) bool { return len(value) > 8 }
		of := func(owner string) func(string) bool { return func(have string) bool { return have == owner } }
		for i, object := range []string{"one", "two"} {
			testkit.Apply(t, ns, widget(fmt.Sprintf("u%d", i), fmt.Sprintf("{name: %s, data: {of: u%d}}", object, i)))
		}
		one, two := secretText(t, ns, "one", "password", some), secretText(t, ns, "two", "password", some)
		for i, object := range []string{"two", "one"} {
			testkit.Apply(t, ns, widget(fmt.Sprintf("u%d", i), fmt.Sprintf("{name: %s, data: {of: u%d}}", object, i)))
		}
		for i := range 2 {
			eventuallyCondition(t, ns, fmt.Sprint("u", i), "False", "Conflict", "belongs to")
		}
		r.halt()
		counter := testkit.NewCounter()
		start(t, counter.Wrap(testkit.Config(t)), conf).ready()
		bubble.Quiet(t, counter)
		secretText(t, ns, "one", "password", of(one))
		secretText(t, ns, "two", "password", of(two))
		testkit.Apply(t, ns, widget("u0", "{name: free, data: {of: u0}}"))
		secretText(t, ns, "one", "of", of("u1"))
		testkit.Apply(t, ns, widget("u0", "{name: two, data: {of: u0}}"))
		secretText(t, ns, "two", "of", of("u0"))
		secretText(t, ns, "one", "password", of(two))
		secretText(t, ns, "two", "password", of(one))
	})
}

// TestValuesStayWithTheirDownstream: if the names of two Secrets of one upstream shift or are swapped, by an edit or by the config, over a
// restart too, each value stays with its downstream, or nothing changes hands. What is left over is not taken either.
func TestValuesStayWithTheirDownstream(t *testing.T) {
	t.Parallel()
	const second = "  - name: second\n    apiVersion: v1\n    kind: Secret\n    template: |\n      metadata: {name: {{ .spec.data.second }}}\n      stringData: {of: second}\n"
	for _, row := range []struct {
		reason      string
		one, second string // the names after the edit; before, they are s1 and s2
		drop        bool   // the second downstream leaves the config
		conflict    bool
	}{
		{"each takes the next name", "s2", "s3", false, false},
		{"swapped", "s2", "s1", false, true},
		{"what is left over has the name", "s2", "none", true, true},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(row.reason, restart), spaced(func(t *testing.T, ns, name string) {
				alone := strings.Replace(generatedConfig(t, ns, name), "      stringData: {{ .spec.data | default (dict) }}", "      stringData: {of: one}", 1)
				conf := replaceOnce(t, alone, "conventions:\n", second+"    "+generatedLine+"\nconventions:\n")
				r := start(t, testkit.Config(t), conf).ready()
				testkit.Apply(t, ns, widget("a", "{name: s1, data: {second: s2}}"))
				one, two := secretText(t, ns, "s1", "password", anyText), secretText(t, ns, "s2", "password", anyText)
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				if restart {
					r.halt()
				}
				if row.drop {
					conf = alone
				}
				r.write("a.yaml", conf)
				if !restart {
					r.reload()
					waitThat(t, widgets, ns, "a", func(u *obj) bool { return strings.Contains(fmt.Sprint(u.Object["status"]), "Leftover") == row.drop })
				}
				testkit.Apply(t, ns, widget("a", fmt.Sprintf("{name: %s, data: {second: %s}}", row.one, row.second)))
				if restart {
					start(t, testkit.Config(t), conf).ready()
				}
				is := func(want string) func(string) bool { return func(have string) bool { return have == want } }
				if row.conflict {
					eventuallyCondition(t, ns, "a", "False", "Conflict", "s2 exists and is of downstream second")
					secretText(t, ns, "s1", "password", is(one))
					secretText(t, ns, "s2", "password", is(two))
					secretText(t, ns, "s2", "of", is("second"))
					return
				}
				waitCondition(t, widgets, ns, "a", "Ready", "True")
				waitGone(t, secretKind, ns, "s1")
				for key, values := range map[string][2]string{"password": {one, two}, "of": {"one", "second"}} {
					secretText(t, ns, "s2", key, is(values[0]))
					secretText(t, ns, "s3", key, is(values[1]))
				}
			}))
		}
	}
}
