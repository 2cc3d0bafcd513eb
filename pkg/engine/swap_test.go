package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corollary-dev/corollary/internal/testkit"
)

// swapping is widgetConfig with an object that says whose it is, and with these lines for the downstream.
func swapping(ns, name string, lines ...string) string {
	conf := strings.Replace(fill(widgetConfig, ns, name), "data: {{ .spec.data }}", "data: {of: {{ .metadata.name }}}", 1)
	return with(conf, lines...)
}

// widgetAt is a Widget whose object has another name.
func widgetAt(name, object string) string { return widget(name, "{name: "+object+"}") }

// unrecorded is a config that writes no status.
func unrecorded(conf string) string {
	before, after, _ := strings.Cut(conf, "status:\n")
	_, after, _ = strings.Cut(after, "events:")
	return before + "status: {enabled: false}\nevents:" + after
}

// TestNamesAreSwapped: upstreams that take over each other's names do not wait for each other.
func TestNamesAreSwapped(t *testing.T) {
	t.Parallel()
	second := func(lines string) string {
		return "    # downstream\n  - name: second\n" + lines + "    apiVersion: v1\n    kind: ConfigMap\n    template: |\n" +
			"      metadata: {name: \"{{ .spec.name }}-second\"}\n      data: {of: {{ .metadata.name }}}\n"
	}
	for _, row := range []struct {
		reason string
		change func(conf string) string
		names  []string // in turn; at first each upstream has that of its own number, then that of the next
	}{
		{"two", nil, []string{"one", "two"}},
		{"three in a circle", nil, []string{"one", "two", "three"}},
		{"upstreams wait until their objects are gone", func(conf string) string { return conf + "deletion: {wait: true}\n" }, []string{"one", "two"}},
		{"marks without references", func(conf string) string {
			return strings.Replace(conf, "owner: {", "owner: {reference: false, ", 1)
		}, []string{"one", "two"}},
		{"objects that are made once", func(conf string) string { return with(conf, "updatePolicy: CreateOnly") }, []string{"one", "two"}},
		{"nothing records them", unrecorded, []string{"one", "two"}},
		{"two of a kind, which nothing records", func(conf string) string {
			return strings.Replace(unrecorded(conf), "    # downstream\n", second(""), 1)
		}, []string{"one", "two"}},
		{"one comes after the other", func(conf string) string {
			return strings.Replace(conf, "    # downstream\n", second("    after: [config]\n"), 1)
		}, []string{"one", "two"}},
	} {
		for _, at := range []string{"while it runs", "over a restart"} {
			t.Run(row.reason+" "+at, spaced(func(t *testing.T, ns, name string) {
				conf := swapping(ns, name)
				if row.change != nil {
					conf = row.change(conf)
				}
				r := start(t, testkit.Config(t), conf).ready()
				for shift := range 2 {
					if shift == 1 && at == "over a restart" {
						r.halt()
					}
					for i := range row.names {
						testkit.Apply(t, ns, widgetAt(fmt.Sprintf("u%d", i), row.names[(i+shift)%len(row.names)]))
					}
					if shift == 1 && at == "over a restart" {
						start(t, testkit.Config(t), conf).ready()
					}
					for i := range row.names {
						waitData(t, ns, row.names[(i+shift)%len(row.names)], "of", fmt.Sprintf("u%d", i))
					}
				}
				testkit.Eventually(t, patience, func() (bool, string) {
					have := len(testkit.List(t, configMaps, ns, selector(name)))
					want := len(row.names) * strings.Count(conf, "    kind: ConfigMap\n")
					return have == want, fmt.Sprintf("there are %d objects, want %d", have, want)
				})
			}))
		}
	}
}

// TestRowsSwapNames is TestNamesAreSwapped for rows, all in one result.
func TestRowsSwapNames(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		db := newDatabase(t)
		db.add(1, 6)
		db.exec(`UPDATE apps SET data = json_object('of', 'row ' || id)`)
		start(t, testkit.Config(t), db.config(ns, name)).ready()
		waitData(t, ns, app(6), "of", "row 6")
		db.exec(`UPDATE apps SET name = 'app-' || (CASE WHEN id <= 4 THEN id % 4 + 1 ELSE 11 - id END)`) // four in a circle, and two
		for i := 1; i <= 6; i++ {
			to := 11 - i
			if i <= 4 {
				to = i%4 + 1
			}
			waitData(t, ns, app(to), "of", fmt.Sprintf("row %d", i))
		}
		waitApps(t, ns, name, 1, 6)
	})
}

// TestItemsSwapNames is TestNamesAreSwapped for objects of items.
func TestItemsSwapNames(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := replaceOnce(t, fill(poolConfig, ns, name), `"{{ .metadata.name }}-{{ item.name }}"`, `"{{ item.name }}"`)
		conf = replaceOnce(t, conf, `{value: "{{ item.value }}"}`, `{of: {{ .metadata.name }}}`)
		start(t, testkit.Config(t), conf).ready()
		testkit.Apply(t, ns, pool("p", "a", "b", "stays-p"))
		testkit.Apply(t, ns, pool("q", "c", "d", "stays-q"))
		for object, of := range map[string]string{"a": "p", "b": "p", "stays-p": "p", "c": "q", "d": "q", "stays-q": "q"} {
			waitData(t, ns, object, "of", of)
		}
		stays := testkit.Get(t, configMaps, ns, "stays-p")
		testkit.Apply(t, ns, pool("p", "c", "d", "stays-p"))
		testkit.Apply(t, ns, pool("q", "a", "b", "stays-q"))
		for object, of := range map[string]string{"a": "q", "b": "q", "stays-p": "p", "c": "p", "d": "p", "stays-q": "q"} {
			waitData(t, ns, object, "of", of)
		}
		mustBeSame(t, configMaps, stays, "it was not renamed")
	})
}

// TestPlacesAreSwapped is TestNamesAreSwapped for objects of one name that swap their namespaces, and for fields of objects of others.
func TestPlacesAreSwapped(t *testing.T) {
	t.Parallel()
	swap := func(t *testing.T, ns string, places []string, at func(place string) (ns, name string)) {
		for shift := range 2 {
			for i := range places {
				testkit.Apply(t, ns, widgetAt(fmt.Sprintf("u%d", i), places[(i+shift)%2]))
			}
			for i := range places {
				space, name := at(places[(i+shift)%2])
				waitData(t, space, name, "of", fmt.Sprintf("u%d", i))
			}
		}
	}
	t.Run("namespaces", spacedTwice(func(t *testing.T, ns, other, name string) {
		conf := replaceOnce(t, swapping(ns, name, "targetNamespaces: {from: List, names: ["+ns+", "+other+"]}"),
			"name: {{ .spec.name | default .metadata.name }}", "name: same\n        namespace: {{ .spec.name }}")
		start(t, testkit.Config(t), conf).ready()
		swap(t, ns, []string{ns, other}, func(place string) (string, string) { return place, "same" })
	}))
	t.Run("fields", spaced(func(t *testing.T, ns, name string) {
		makeTheirs(t, ns, "one")
		makeTheirs(t, ns, "two")
		start(t, testkit.Config(t), strings.Replace(contributing(ns, name, ""), "data: {{ .spec.data }}", "data: {of: {{ .metadata.name }}}", 1)).ready()
		swap(t, ns, []string{"one", "two"}, func(place string) (string, string) { return ns, place })
		waitData(t, ns, "one", "theirs", "1")
		waitData(t, ns, "two", "theirs", "1")
	}))
}

// TestGeneratedIsNotSwapped: a generated value is its upstream's, and does not come to another one with the name. No object is deleted before
// its value is in another one, so names are swapped through a free one.
func TestGeneratedIsNotSwapped(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		start(t, testkit.Config(t), generatedConfig(t, ns, name)).ready()
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

// keep fails if one of these ConfigMaps goes, or comes to be another upstream's.
func keep(t *testing.T, ns string, of map[string]string) {
	t.Helper()
	never(t, func() (bool, string) {
		for object, up := range of {
			cm := testkit.Find(t, configMaps, ns, object)
			if cm == nil || cm.GetDeletionTimestamp() != nil || fmt.Sprint(cm.Object["data"]) != "map[of:"+up+"]" {
				return true, object + " went"
			}
		}
		return false, ""
	})
}

// TestSwapsTakeNothing: an upstream that waits for a name keeps its object until it has its new one, whatever the others do.
func TestSwapsTakeNothing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		reason string
		lines  []string
		other  string // the edit of the other upstream
		order  string // of the requests; empty: the waiting upstream's object stays
	}{
		{"the other one closes the circle, so that its object is removed first", nil, widgetAt("other", "one"), "DELETE two, PATCH two, DELETE one, PATCH one"},
		{"the other one keeps its name", nil, widgetAt("other", "two"), ""},
		{"the other one goes elsewhere", nil, widgetAt("other", "three"), "PATCH three, DELETE two, PATCH two, DELETE one"},
		{"the other one is paused", nil, strings.Replace(widgetAt("other", "one"), "{name: other}", `{name: other, annotations: {NAME.example.com/paused: "true"}}`, 1), ""},
		{"what is kept would be in the way", []string{"deletionPolicy: Orphan"}, widgetAt("other", "one"), ""},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			counter := testkit.NewCounter()
			conf := swapping(ns, name, row.lines...)
			if len(row.lines) > 0 {
				conf = strings.Replace(conf, "owner: {", "owner: {reference: false, ", 1)
			}
			start(t, counter.Wrap(testkit.Config(t)), conf).ready()
			testkit.Apply(t, ns, widgetAt("waits", "one"))
			testkit.Apply(t, ns, widgetAt("other", "two"))
			waitData(t, ns, "one", "of", "waits")
			waitData(t, ns, "two", "of", "other")
			testkit.Apply(t, ns, widgetAt("waits", "two"))
			eventuallyCondition(t, ns, "waits", "False", "Conflict", "")
			settle(t, counter)
			testkit.Apply(t, ns, fill(row.other, ns, name))
			if row.order == "" {
				keep(t, ns, map[string]string{"one": "waits"})
				return
			}
			waitData(t, ns, "two", "of", "waits")
			if strings.Contains(row.order, "three") {
				waitGone(t, configMaps, ns, "one")
			} else {
				waitData(t, ns, "one", "of", "other")
			}
			var order []string
			for _, request := range counter.Requests(testkit.Request.Mutating, func(r testkit.Request) bool { return r.Resource == "configmaps" && r.Code < 300 }) {
				order = append(order, request.Verb+" "+request.Name)
			}
			if have := strings.Join(order, ", "); have != row.order {
				t.Errorf("the requests are %s, want %s", have, row.order)
			}
		}))
	}
}

// TestSwapWithRefusedObject: nobody loses an object for one that the API server refuses.
func TestSwapWithRefusedObject(t *testing.T) {
	t.Parallel()
	good, bad := "{key: value}", "{'no key!': value}"
	for _, row := range []struct {
		reason        string
		first, second string // the data of the upstreams that ask for the other's name
	}{
		{"the one that waits", bad, good},
		{"the one that closes the circle", good, bad},
	} {
		t.Run(row.reason, spaced(func(t *testing.T, ns, name string) {
			_, counter := startCounted(t, fill(widgetConfig, ns, name))
			testkit.Apply(t, ns, widget("first", "{name: one, data: {of: first}}"))
			testkit.Apply(t, ns, widget("second", "{name: two, data: {of: second}}"))
			waitData(t, ns, "one", "of", "first")
			waitData(t, ns, "two", "of", "second")
			testkit.Apply(t, ns, widget("first", "{name: two, data: "+row.first+"}"))
			eventuallyCondition(t, ns, "first", "False", "Conflict", "")
			testkit.Apply(t, ns, widget("second", "{name: one, data: "+row.second+"}"))
			eventuallyCondition(t, ns, "second", "False", "Conflict", "")
			keep(t, ns, map[string]string{"one": "first", "two": "second"})
			if writes := counter.Mutating(func(r testkit.Request) bool { return r.Resource == "configmaps" }); writes != 2 {
				t.Errorf("%d writes, want the first two objects", writes)
			}
			testkit.Apply(t, ns, widget("first", "{name: two, data: "+good+"}"))
			testkit.Apply(t, ns, widget("second", "{name: one, data: "+good+"}"))
			waitData(t, ns, "one", "key", "value")
			waitData(t, ns, "two", "key", "value")
		}))
	}
}
