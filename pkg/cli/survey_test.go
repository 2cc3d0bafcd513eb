package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/testkit"
)

var changing = regexp.MustCompile(`v1-[0-9a-v]{40,}|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z|\b(?:[0-9]+m)?[0-9]+s\b`)

// digests are of objects with their uids.
var digests = regexp.MustCompile(`digest [0-9a-f]{32}`)

// spaces pad the columns of a table, whose widths depend on the namespace's name.
var spaces = regexp.MustCompile(`(\S) {3,}`)

// normal is an output without what is another in each run.
func normal(text, ns string) string {
	text = digests.ReplaceAllString(text, "digest DIGEST")
	text = changing.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasPrefix(s, "v1-"):
			return "HASH"
		case strings.HasSuffix(s, "Z"):
			return "TIME"
		case strings.HasSuffix(s, "s"):
			return "AGE"
		}
		return "UID"
	})
	text = spaces.ReplaceAllString(text, "$1   ")
	return strings.ReplaceAll(text, ns, "NS")
}

// applyAll applies the documents of a text.
func applyAll(t *testing.T, ns, text string) {
	t.Helper()
	for _, doc := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(doc) != "" {
			testkit.Apply(t, ns, doc)
		}
	}
}

// made makes the Deployments that a case says another manager has made: by a POST, or by an apply.
func made(t *testing.T, ns string, c *golden.Case) {
	t.Helper()
	client := testkit.Dynamic(t).Resource(deployments).Namespace(ns)
	for _, f := range c.Files {
		var err error
		if manager, ok := strings.CutPrefix(f.Name, "posted by "); ok {
			_, err = client.Create(t.Context(), testkit.Parse(t, string(f.Data)), metav1.CreateOptions{FieldManager: manager})
		} else if manager, ok := strings.CutPrefix(f.Name, "applied by "); ok {
			obj := testkit.Parse(t, string(f.Data))
			_, err = client.Apply(t.Context(), obj.GetName(), obj, metav1.ApplyOptions{FieldManager: manager})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// runUntilIdle runs operators until they have nothing to do any more.
func runUntilIdle(t *testing.T, ns string, configs ...string) {
	t.Helper()
	args := []string{"run", "--metrics-bind-address", "0", "--health-probe-bind-address", "0"}
	plan := []string{"plan", "--no-diff"}
	for _, c := range configs {
		args, plan = append(args, "-c", c), append(plan, "-c", c)
	}
	p := start(t, testkit.Config(t), args...)
	eventuallyReported(t, ns) // cheaper than a plan, and says nearly as much
	testkit.Eventually(t, patience, func() (bool, string) {
		code, out := run(t, plan...)
		return code == 0, out
	})
	p.stop(t)
}

// eventuallyReported waits until every Widget has conditions.
func eventuallyReported(t *testing.T, ns string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		for _, w := range testkit.List(t, widgets, ns, "") {
			if conditions, _, _ := unstructured.NestedSlice(w.Object, "status", "conditions"); len(conditions) == 0 {
				return false, w.GetName() + " has no status"
			}
		}
		return true, ""
	})
}

// TestSurveyCommands runs the cases of plan, why and get.
func TestSurveyCommands(t *testing.T) {
	t.Parallel()
	golden.Cases(t, "testdata/live/*.txtar", func(t *testing.T, c *golden.Case) {
		t.Parallel()
		surveyCase(t, c, memory(t))
	})
}

// surveyCase runs a case: operator*.yaml settle what is in before.yaml, after.yaml is applied, and a command that
// prints it.
func surveyCase(t *testing.T, c *golden.Case, ns string) {
	dir := inDirectory(t)
	for _, f := range c.Files {
		write(t, filepath.Join(dir, f.Name), strings.ReplaceAll(string(f.Data), "NS", ns))
	}
	section := func(name string) string { return strings.ReplaceAll(c.Section(name), "NS", ns) }
	applyAll(t, ns, section("before.yaml"))
	if section("before.yaml") != "" {
		configs, _ := filepath.Glob(dir + "/operator*.yaml")
		runUntilIdle(t, ns, configs...)
	}
	applyAll(t, ns, section("after.yaml"))
	made(t, ns, c)
	for _, line := range strings.Split(strings.TrimSpace(section("edit")), "\n") {
		if name, patch, ok := strings.Cut(line, " "); ok {
			testkit.Patch(t, configMaps, ns, name, "kubectl-edit", patch)
		}
	}
	before := testkit.List(t, configMaps, ns, "")
	out, errs, code := split(t, strings.Fields(section("command"))...)
	asJSON, _, _ := split(t, "plan", "-c", "operator.yaml", "-o", "json")
	all := normal(out+asJSON, ns)                                // a uid may begin like a password
	for _, value := range []string{"a1", "b2", "YTE=", "YjI="} { // what the cases have for passwords
		if strings.Contains(all, `"`+value+`"`) || strings.Contains(all, ": "+value) {
			t.Errorf("the value of a Secret is shown:\n%s", all)
		}
	}
	c.Want(t, "want", normal(fmt.Sprintf("%s%sexit code %d\n", out, errs, code), ns))
	for i, after := range testkit.List(t, configMaps, ns, "") {
		if after.GetResourceVersion() != before[i].GetResourceVersion() {
			t.Errorf("%s was written", after.GetName())
		}
	}
}

// TestPlanAsJSON: what docs/cli.md promises of the shape.
func TestPlanAsJSON(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	testkit.Apply(t, ns, blueWidget)
	out, errs, code := split(t, "plan", "-c", operatorFile, "-n", ns, "-o", "json")
	var plan struct {
		Items []struct {
			Operator, Downstream, APIVersion, Kind, Namespace, Name, Action, State, Reason string
			Upstream                                                                       struct{ APIVersion, Kind, Namespace, Name, UID string }
			Differences                                                                    []struct{ Path, Op string }
			Before, After                                                                  map[string]any
		}
		Counts map[string]int
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil || code != 2 || errs != "" {
		t.Fatalf("exit code %d, %v, %s\n%s", code, err, errs, out)
	}
	if len(plan.Items) != 1 || plan.Counts["create"] != 1 {
		t.Fatalf("the plan is %+v", plan)
	}
	if i := plan.Items[0]; i.Operator != "widgets" || i.Downstream != "config" || i.APIVersion != "v1" || i.Kind != "ConfigMap" ||
		i.Namespace != ns || i.Name != "one" ||
		i.Action != "create" || i.State != "Create" || i.Upstream.Kind != "Widget" || i.Upstream.UID == "" || len(i.Differences) == 0 ||
		i.Before != nil || i.After == nil {
		t.Errorf("the item is %+v", i)
	}
}

// TestPlanFails: exit code 1 is for what kept the plan from being made.
func TestPlanFails(t *testing.T) {
	t.Parallel()
	memory(t)
	for _, c := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"a kind that is not served", []string{"-c", "testdata/errors/gadgets.yaml"}, "has no kind Gadget in"},
		{"a config with errors", []string{"-c", "testdata/errors/untyped.yaml"}, "in the config"},
		{"an old config with errors", []string{"-c", operatorFile, "--against", "testdata/errors/untyped.yaml"}, "--against: "},
		{"no workers", []string{"-c", operatorFile, "--workers", "0"}, "--workers is 0"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if code, out := run(t, append([]string{"plan"}, c.args...)...); code != 1 || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, %q wanted in\n%s", code, c.want, out)
			}
		})
	}
}

// TestGetFollows prints what changes, and what goes.
func TestGetFollows(t *testing.T) {
	t.Parallel()
	ns := memory(t)
	testkit.Apply(t, ns, blueWidget)
	p := startWriting(t, testkit.Config(t), "get", "-w", "-c", operatorFile, "-n", ns, "-o", "json")
	says := func(text string) {
		t.Helper()
		testkit.Eventually(t, patience, func() (bool, string) {
			return strings.Contains(p.text(t), text), text + " is missing in\n" + p.text(t)
		})
	}
	says(`"name":"one","uid"`)
	says(`"state":"Create"`)
	testkit.Apply(t, ns, strings.ReplaceAll(blueWidget, "name: one", "name: two"))
	says(`"name":"two","uid"`)
	testkit.Delete(t, widgets, ns, "one")
	says(`"state":"Gone"`)
	p.stop(t)
}

var (
	initiated    = schema.GroupVersionResource{Group: "platform.example.com", Version: "v1", Resource: "initiateds"}
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
)
