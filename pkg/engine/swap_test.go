package engine_test

import (
	"fmt"
	"testing"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// TestNamesAreNotSwapped: upstreams that take over each other's names are in Conflict and keep their objects, over a restart too. They swap
// their names by a free one in between; their values go with them.
func TestNamesAreNotSwapped(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, name := testkit.Namespace(t), testkit.Unique(t)
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
