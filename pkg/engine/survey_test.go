package engine_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
	"github.com/corollary-dev/corollary/pkg/survey"
)

// loadText reads a config.
func loadText(t testing.TB, text string) *load.File {
	t.Helper()
	files, errs := load.Operators(load.Options{Files: []string{writeConfigs(t, text)}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return files[0]
}

// surveyed is what a survey found, by upstream's name.
type surveyed map[string]*preview.Finding

// openSurvey opens a survey of a config.
func openSurvey(ctx context.Context, t testing.TB, cfg *rest.Config, o survey.Options, text string) *survey.Survey {
	t.Helper()
	s := must.Get(survey.NewSurveyor(cfg, o)).In(t)
	v := must.Get(s.Open(ctx, loadText(t, text))).In(t)
	return v
}

// surveyAll looks at everything and checks that nothing was written.
func surveyAll(t testing.TB, cfg *rest.Config, o survey.Options, text string) surveyed {
	t.Helper()
	counter := testkit.NewCounter()
	o.Workers = 4
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v := openSurvey(ctx, t, counter.Wrap(cfg), o, text)
	defer v.Close()
	found := surveyed{}
	must.Do(t, v.Visit(ctx, v.Refs(), func(f *preview.Finding) error { found[f.Ref.Name] = f; return nil }))
	if n := counter.Mutating(); n != 0 {
		t.Errorf("a survey wrote: %+v", counter.Requests(testkit.Request.Mutating))
	}
	return found
}

// says returns the changes of an upstream, each as "action target", with the failure's reason where there is one.
func (s surveyed) says(name string) string {
	f := s[name]
	if f == nil {
		return "nothing"
	}
	var parts []string
	for _, c := range f.Changes {
		part := string(c.Action) + " " + c.Target.Name
		if c.Failure != nil {
			part += " " + c.Failure.Reason
		}
		parts = append(parts, part)
	}
	for _, r := range f.Forgotten {
		parts = append(parts, "forgotten "+r.ObjectName)
	}
	return strings.Join(parts, ", ")
}

func (s surveyed) expect(t *testing.T, name, want string) *preview.Finding {
	t.Helper()
	must.Same(t, want, s.says(name), "of", name, "the survey")
	return s[name]
}

// leave runs a config until Widgets of these names are ready, and stops it.
func leave(t *testing.T, ns, conf string, names ...string) {
	t.Helper()
	r := start(t, testkit.Config(t), conf).ready()
	for _, name := range names {
		applyReady(t, ns, name, "{data: {a: b}}")
	}
	r.halt()
}

// dataOf is the value under the key a of a ConfigMap.
func dataOf(u *unstructured.Unstructured) any { return u.Object["data"].(map[string]any)["a"] }

// TestSurveyShowsWhatRunWouldDo sets up one upstream for each decision, surveys, and then runs the operator: it does
// what the survey said.
func TestSurveyShowsWhatRunWouldDo(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		text := fill(widgetConfig, ns, "surveyed")
		leave(t, ns, text, "same", "changed", "drifted", "renamed", "gone", "going")
		testkit.Apply(t, ns, widget("changed", "{data: {a: c}}"))
		testkit.Patch(t, configMaps, ns, "drifted", "kubectl-edit", `{"data": {"a": "x"}}`)
		testkit.Apply(t, ns, widget("renamed", "{data: {a: b}, name: other}"))
		testkit.Delete(t, configMaps, ns, "gone")
		testkit.Apply(t, ns, widget("new", "{data: {a: b}}"))
		testkit.Apply(t, ns, widget("refused", "{data: {'not/a/key': b}}"))
		testkit.Apply(t, ns, "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}, data: {}}")
		testkit.Apply(t, ns, widget("taken", "{data: {a: b}}"))
		testkit.Apply(t, ns, widget("unrendered", "{name: NOT_A_NAME}"))

		found := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, text)
		found.expect(t, "same", "none same")
		changed := found.expect(t, "changed", "update changed").Changes[0]
		if before, after := dataOf(changed.Before), dataOf(changed.After); before != "b" || after != "c" {
			t.Errorf("changed is to go from %v to %v, want from b to c", before, after)
		}
		drifted := found.expect(t, "drifted", "repair drifted").Changes[0]
		if len(drifted.Drift) != 1 || drifted.Drift[0].Path.String() != ".data.a" || drifted.Drift[0].Manager != "kubectl-edit" {
			t.Errorf("the drift is %+v, want .data.a by kubectl-edit", drifted.Drift)
		}
		found.expect(t, "renamed", "create other, supersede renamed")
		found.expect(t, "gone", "create gone")
		found.expect(t, "new", "create new")
		found.expect(t, "refused", "refuse refused Rejected")
		found.expect(t, "taken", "conflict taken")
		found.expect(t, "unrendered", "leave ")

		start(t, testkit.Config(t), text).ready()
		for object, value := range map[string]string{"changed": "c", "drifted": "b", "other": "b", "gone": "b", "new": "b"} {
			waitData(t, ns, object, "a", value)
		}
		waitGone(t, configMaps, ns, "renamed")
		testkit.Eventually(t, patience, func() (bool, string) {
			again := surveyAll(t, testkit.Config(t), survey.Options{}, text)
			for name, want := range map[string]string{"same": "none same", "changed": "none changed", "renamed": "none other", "new": "none new"} {
				if have := again.says(name); have != want {
					return false, name + ": " + have
				}
			}
			return true, ""
		})
	})
}

// TestSurveyOfWhatGoes: objects of an upstream that is deleted, of one that lost its label, and what a renamed
// downstream leaves behind.
func TestSurveyOfWhatGoes(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		text := strings.Replace(fill(widgetConfig, ns, "departing"), "namespaces: ["+ns+"]}", "namespaces: ["+ns+"], labelSelector: {matchLabels: {on: \"yes\"}}}", 1)
		text = strings.Replace(text, "owner: {", "owner: {reference: false, ", 1)
		r := start(t, testkit.Config(t), text).ready()
		for _, name := range []string{"deleted", "unlabeled", "kept"} {
			testkit.Apply(t, ns, strings.Replace(widget(name, "{data: {a: b}}"), "name: "+name, "name: "+name+", labels: {on: \"yes\"}", 1))
			waitCondition(t, widgets, ns, name, "Ready", "True")
		}
		r.halt()
		testkit.Delete(t, widgets, ns, "deleted")
		testkit.Patch(t, widgets, ns, "unlabeled", "test", `{"metadata": {"labels": null}}`)

		found := surveyAll(t, testkit.Config(t), survey.Options{}, text)
		found.expect(t, "kept", "none kept")
		found.expect(t, "unlabeled", "leftover unlabeled")
		if f := found.expect(t, "deleted", "delete deleted"); f.Finalizer != operator.FinalizerRemove {
			t.Error("the finalizer is not said to go")
		}

		renamed := strings.Replace(text, "- name: config\n    apiVersion: v1\n    kind: ConfigMap", "- name: config\n    apiVersion: v1\n    kind: Secret", 1)
		renamed = strings.Replace(renamed, "      data:", "      stringData:", 1)
		surveyAll(t, testkit.Config(t), survey.Options{}, renamed).expect(t, "kept", "create kept, forgotten kept")

		start(t, testkit.Config(t), text).ready()
		waitGone(t, widgets, ns, "deleted")
		testkit.Get(t, configMaps, ns, "unlabeled")
		deleteAndWait(t, widgets, ns, "kept")
	})
}

// TestSurveyRecreates: what the API server never changes is deleted and made again, and a dry run of that does not
// fail.
func TestSurveyRecreates(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		text := strings.Replace(fill(widgetConfig, ns, "recreating"), "    # downstream", "      immutable: true\n    updatePolicy: Recreate", 1)
		leave(t, ns, text, "fixed")
		testkit.Apply(t, ns, widget("fixed", "{data: {a: c}}"))
		c := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, text).expect(t, "fixed", "recreate fixed").Changes[0]
		if c.After.GetName() != "fixed" || dataOf(c.After) != "c" || dataOf(c.Before) != "b" {
			t.Errorf("it is to go from %v to %v", c.Before, c.After)
		}
	})
}

// TestSurveyIntoNoNamespace: the namespace may be the next thing that someone makes.
func TestSurveyIntoNoNamespace(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		text := strings.Replace(fill(widgetConfig, ns, "nowhere"), "        name: {{ .spec.name | default .metadata.name }}",
			"        name: {{ .metadata.name }}\n        namespace: nowhere-to-be-found", 1)
		text = strings.Replace(text, "    # downstream", "    targetNamespaces: {from: Any}", 1)
		testkit.Apply(t, ns, widget("early", "{data: {a: b}}"))
		f := surveyAll(t, testkit.Config(t), survey.Options{}, text).expect(t, "early", "create early")
		if f.Finalizer != operator.FinalizerAdd || !strings.Contains(f.Changes[0].Note, "namespace nowhere-to-be-found does not exist yet") {
			t.Errorf("found %+v", f.Changes[0])
		}
	})
}

// TestSurveyFollows sees a change after the first visit.
func TestSurveyFollows(t *testing.T) {
	inMemory(t, func(t *testing.T) {
		ns := testkit.Namespace(t)
		testkit.Apply(t, ns, widget("first", "{data: {a: b}}"))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		v := openSurvey(ctx, t, testkit.Config(t), survey.Options{}, fill(widgetConfig, ns, "follower"))
		defer v.Close()
		if refs := v.Refs(); len(refs) != 1 || refs[0].Name != "first" {
			t.Fatalf("it knows of %v", refs)
		}
		var applying sync.WaitGroup
		defer applying.Wait() // its answer may come after the news of it
		applying.Go(func() { testkit.Apply(t, ns, widget("second", "{data: {a: b}}")) })
		begun := time.Now()
		err := v.Follow(ctx, func(f *preview.Finding) error {
			if f.Ref.Name == "second" && len(f.Changes) == 1 && f.Changes[0].Action == preview.Create {
				cancel()
			}
			return nil
		})
		if err != nil || time.Since(begun) > patience-time.Second {
			t.Errorf("following ended after %s with %v", time.Since(begun), err)
		}
	})
}

// TestSurveyDuringBefore: what comes before a deletion and what waits for it are shown; no dry run is made of either.
func TestSurveyDuringBefore(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		text := withBefore(ns, name)
		r, _ := startMade(t, ns, text)
		testkit.Delete(t, widgets, ns, "a")
		waitBefore(t, ns, "a", "BeforeRunning")
		r.halt()
		surveyAll(t, testkit.Config(t), survey.Options{}, text).expect(t, "a", "wait a-drain, wait a")
		testkit.Patch(t, configMaps, ns, "a-drain", "somebody", drainDone)
		surveyAll(t, testkit.Config(t), survey.Options{}, text).expect(t, "a", "wait a-drain, wait a")

		start(t, testkit.Config(t), text)
		waitGone(t, widgets, ns, "a")
	})
}

// TestSurveyKeepsTheShard: a survey does not know how many shards there are, and says nothing of the label.
func TestSurveyKeepsTheShard(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		conf := shardLabeled(fill(widgetConfig, ns, name), name)
		m := startAlone(t, conf)
		applyReady(t, ns, "a", "{data: {key: value}}")
		m.halt()
		has := testkit.Get(t, configMaps, ns, "a").GetLabels()[name+".example.com/shard"]
		conf = strings.Replace(conf, "data: {{ .spec.data }}", "data: {key: other}", 1)
		change := surveyAll(t, testkit.Config(t), survey.Options{Documents: true}, conf).expect(t, "a", "update a").Changes[0]
		must.Same(t, has, change.After.GetLabels()[name+".example.com/shard"], "afterwards, the label of the shard", has)
		for _, d := range change.Drift {
			if strings.Contains(d.Path.String(), "example.com/shard") {
				t.Errorf("it says that %s is to be %v", d.Path, d.Want)
			}
		}
	})
}

// TestSurveyWithoutBefore: what is not needed before a deletion holds nothing, so that what follows is shown.
func TestSurveyWithoutBefore(t *testing.T) {
	inSpace(t, func(t *testing.T, ns, name string) {
		text := withBefore(ns, name, `when: self.spec.?name.orValue("") != "a"`)
		r := start(t, testkit.Config(t), text).ready()
		applyReady(t, ns, "a", "{name: a, data: {key: value}}")
		r.halt()
		testkit.Delete(t, widgets, ns, "a")
		surveyAll(t, testkit.Config(t), survey.Options{}, text).expect(t, "a", "delete a")
		start(t, testkit.Config(t), text)
		waitGone(t, widgets, ns, "a")
		mustBeAbsent(t, configMaps, ns, "a-drain", "the object was created though when is false")
	})
}

// withFar is a config with two downstreams of one kind, of which the second is in another namespace.
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

// TestLeftInASharedNamespace: what a survey finds left of upstreams that are gone is never of one that is there, though
// the survey does not look at it, or has not seen it yet.
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
				must.Same(t, row.want, at, row.reason, "is said to be left")
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
		err := v.Follow(ctx, func(f *preview.Finding) error {
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

// takenDeployment is a Deployment as someone made it who goes on to be replaced: it has more than adoptingDeployment
// asks for, and a port of the name that another number is to have, so that both together would be refused.
const takenDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  annotations: {theirs: "1", kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec:
  replicas: 3
  minReadySeconds: 5
  selector: {matchLabels: {app: a}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3}}
  template:
    metadata: {labels: {app: a}, annotations: {theirs: "1"}}
    spec:
      terminationGracePeriodSeconds: 7
      nodeSelector: {disk: fast}
      containers:
        - {name: app, image: "app:1", args: [theirs], env: [{name: MINE, value: "0"}, {name: THEIRS, value: "1"}]PORTS}
        - {name: sidecar, image: "theirs:1"}
`

// adoptingDeployment is widgetConfig with a Deployment in the place of the ConfigMap.
func adoptingDeployment(ns, name, managers string) string {
	return with(strings.NewReplacer("apiVersion: v1\n    kind: ConfigMap", "apiVersion: apps/v1\n    kind: Deployment", "data: {{ .spec.data }}", `spec:
        replicas: 2
        selector: {matchLabels: {app: {{ .metadata.name }}}}
        template:
          metadata: {labels: {app: {{ .metadata.name }}}}
          spec:
            containers: [{name: app, image: "app:1", env: [{name: MINE, value: "1"}], ports: [{name: http, containerPort: 8080}]}]`).
		Replace(fill(widgetConfig, ns, name)), "adoptionPolicy: IfUnowned", "adopt: {fieldManagers: ["+managers+"]}")
}

// makeDeployment has a manager make takenDeployment: by a POST, or by an apply.
func makeDeployment(t *testing.T, ns, manager, ports string, apply bool) {
	t.Helper()
	obj, client := testkit.Parse(t, strings.Replace(takenDeployment, "PORTS", ports, 1)), testkit.Dynamic(t).Resource(deployments).Namespace(ns)
	var err error
	if apply {
		_, err = client.Apply(t.Context(), "a", obj, metav1.ApplyOptions{FieldManager: manager})
	} else {
		_, err = client.Create(t.Context(), obj, metav1.CreateOptions{FieldManager: manager})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// asked is an object less its status and what the API server keeps of it.
func asked(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u.Object
}
