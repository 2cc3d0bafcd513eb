package engine_test

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/reconcile"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// withFar is a config with two downstreams of one kind, of which the second stands in another namespace.
func withFar(t *testing.T, name, shared string, watched ...string) string {
	t.Helper()
	conf := replaceOnce(t, fill(widgetConfig, "WATCHED", name), "    # downstream\n", `
  - name: far
    apiVersion: v1
    kind: ConfigMap
    targetNamespaces: {from: List, names: [`+shared+`]}
    template: |
      metadata: {name: {{ .metadata.namespace }}-{{ .metadata.name }}, namespace: `+shared+`}
      data: {k: v}
`)
	return strings.Replace(conf, "WATCHED", strings.Join(watched, ", "), 1)
}

// TestLeftInASharedNamespace: what a survey finds left of upstreams that are gone is never of one that is there, though the
// survey does not look at it, or has not heard of it yet.
func TestLeftInASharedNamespace(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		one, two, shared, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		conf := withFar(t, name, shared, one, two, shared)
		running := start(t, testkit.Config(t), conf).ready()
		for _, at := range [][2]string{{one, "here"}, {one, "forced"}, {two, "other"}} {
			testkit.Apply(t, at[0], widget(at[1], "{data: {a: b}}"))
			waitCondition(t, widgets, at[0], at[1], "Ready", "True")
		}
		running.halt()
		testkit.Update(t, widgets, one, "forced", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
		testkit.Delete(t, widgets, one, "forced")

		far := "far " + shared + "/" + one + "-forced"
		for _, row := range []struct {
			reason, conf, namespace string
			want                    string
		}{
			{"all namespaces", conf, "", far},
			{"the upstream's own", conf, one, far},
			{"another one", conf, two, ""},
			{"the config watches another one", withFar(t, name, shared, two), "", ""},
			{"a selector passes it over", watched(withFar(t, name, shared, one, two), `labelSelector: {matchLabels: {on: "yes"}}`), "", far},
			{"another one, and a selector", watched(conf, `labelSelector: {matchLabels: {on: "yes"}}`), two, ""},
		} {
			var left []string
			for n, f := range surveyAll(t, testkit.Config(t), survey.Options{Left: true, Namespace: row.namespace}, row.conf) {
				if row.namespace != "" && f.Ref.Namespace != row.namespace {
					t.Errorf("%s: it looks at %s/%s", row.reason, f.Ref.Namespace, n)
				}
				for _, c := range f.Left {
					left = append(left, c.Downstream+" "+c.Target.String())
				}
			}
			for _, at := range left {
				if at != row.want {
					t.Errorf("%s: %s is said to be left", row.reason, at)
				}
			}
			if row.want != "" && !strings.Contains(strings.Join(left, ","), row.want) {
				t.Errorf("%s: %s is not said to be left: %v", row.reason, row.want, left)
			}
		}
	})
}

// TestLeftAheadOfTheWatch: the object of an upstream that the survey's own watch does not show yet is not left over.
func TestLeftAheadOfTheWatch(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns, shared, name := testkit.Namespace(t), testkit.Namespace(t), testkit.Unique(t)
		conf, watches := withFar(t, name, shared, ns), &held{resource: "widgets"}
		start(t, testkit.Config(t), conf).ready()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		v := openSurvey(ctx, t, watches.wrap(testkit.Config(t)), survey.Options{Left: true}, conf)
		defer v.Close()
		defer watches.hold()()
		testkit.Apply(t, ns, widget("late", "{data: {a: b}}"))
		heard := false
		err := v.Follow(ctx, func(f *reconcile.Finding) error {
			if f.Ref.Name == "late" {
				heard = true
				cancel()
			}
			for _, c := range f.Left {
				t.Errorf("%s is said to be left", c.Target)
			}
			return nil
		})
		if err != nil || !heard {
			t.Errorf("nothing is heard of the upstream: %v", err)
		}
	})
}
