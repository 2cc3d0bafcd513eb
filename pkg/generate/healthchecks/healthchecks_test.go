package healthchecks_test

import (
	"fmt"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	fluxcel "github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/generate/healthchecks"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// conditions of the operators in the table.
var (
	usual = status.Types{Ready: "Ready", Valid: "Valid", Reconciling: "Reconciling", Stalled: "Stalled"}
	few   = status.Types{Ready: "Ready"}
	own   = status.Types{Ready: `App"Ready`, Valid: "AppValid", Stalled: "AppStalled"}
)

// TestHealth: what Argo CD and Flux make of the status that Corollary itself writes, and what kstatus by itself does:
// Flux needs the expressions where that differs. testdata/health.txt has a line for each row.
func TestHealth(t *testing.T) {
	wait := status.Fact{Name: "deployment", Progressing: true, Reason: status.ReasonProgressing, Message: "Available: 1/2"}
	broken := status.Fact{Name: "deployment", Failed: true, Reason: status.ReasonFailed, Message: "quota"}
	conflict := status.Fact{Name: "deployment", Failed: true, Reason: string(operator.StateConflict), Message: "not ours"}
	refused := status.Fact{Name: "deployment", Progressing: true, Reason: "Forbidden", Message: "no right"}
	well := status.Fact{Name: "deployment", Ready: true}
	var out strings.Builder
	for _, row := range []struct {
		reason   string
		types    []status.Types
		says     []status.Summary // of each operator; none: it has written nothing yet
		seen     int64            // the generation that the status speaks of; that of the object is 2
		deleting bool
	}{
		{"ready", of(usual), one(well), 2, false},
		{"ready, and only Ready has a name", of(few), one(well), 2, false},
		{"on its way", of(usual), one(wait), 2, false},
		{"a refused request is tried again", of(few), one(refused), 2, false},
		{"failed", of(usual), one(broken), 2, false},
		{"failed, told by the reason alone", of(few), one(broken), 2, false},
		{"a conflict needs somebody", of(few), one(conflict), 2, false},
		{"an invalid object", of(usual), []status.Summary{{Invalid: []string{"at most 20"}}}, 2, false},
		{"paused", of(usual), paused(wait), 2, false},
		{"paused while ready", of(usual), paused(well), 2, false},
		{"paused, and edited since", of(usual), paused(well), 1, false},
		{"paused while failed", of(usual), paused(broken), 2, false},
		{"nothing is written yet", of(usual), nil, 2, false},
		{"the status speaks of an older spec", of(usual), one(well), 1, false},
		{"a failure of an older spec says nothing", of(usual), one(broken), 1, false},
		{"being deleted", of(usual), one(well), 2, true},
		{"stuck while being deleted", of(usual), one(broken), 2, true},
		{"names of its own, one with a quote", of(own), one(well), 2, false},
		{"names of its own, failed", of(own), one(broken), 2, false},
		{"the worse of two operators counts", of(usual, own), append(one(well), one(broken)...), 2, false},
		{"one of two has written nothing", of(usual, own), one(well), 2, false},
	} {
		health, object := healthOf(t, row.types), spoken(t, row.types, row.says, row.seen, row.deleting)
		script := must.Get(health.ArgoCD()).In(t)
		argo, message := runLua(t, script, object)
		fmt.Fprintf(&out, "%s: Argo CD %s %q, Flux %s", row.reason, argo, message, fluxSays(t, health, object))
		if health.Standard() {
			result := must.Get(kstatus.Compute(object)).In(t)
			fmt.Fprintf(&out, ", kstatus %s", result.Status)
		}
		out.WriteString("\n")
	}
	golden.File(t, "testdata/health.txt", []byte(out.String()))
}

func of(types ...status.Types) []status.Types { return types }

func one(facts ...status.Fact) []status.Summary { return []status.Summary{{Downstreams: facts}} }

// paused is one for an upstream with the annotation that pauses it.
func paused(facts ...status.Fact) []status.Summary {
	return []status.Summary{{Downstreams: facts, Held: "paused"}}
}

func healthOf(t *testing.T, types []status.Types) healthchecks.Health {
	t.Helper()
	var files []*load.File
	for i, c := range types {
		f := &load.File{}
		f.Metadata.Name = string(rune('a' + i))
		f.Watch = config.Watch{APIVersion: "tools.example.com/v1", Kind: "App"}
		f.Conventions.Pause = &config.Pause{Annotation: "tools.example.com/paused"}
		f.Status.Conditions = config.Conditions{Ready: c.Ready, Valid: c.Valid, Reconciling: c.Reconciling, Stalled: c.Stalled}
		files = append(files, f)
	}
	list, silent := healthchecks.Of(files)
	if len(list) != 1 || len(silent) != 0 {
		t.Fatalf("%d kinds, silent: %v; want one kind", len(list), silent)
	}
	return list[0]
}

// spoken is an object of generation 2 with the status that the operators write.
func spoken(t *testing.T, types []status.Types, says []status.Summary, seen int64, deleting bool) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{"apiVersion": "tools.example.com/v1", "kind": "App", "metadata": map[string]any{"name": "x",
		"generation": int64(2)}}
	if deleting {
		object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	var list []any
	for i, summary := range says {
		if summary.Held != "" {
			object["metadata"].(map[string]any)["annotations"] = map[string]any{"tools.example.com/paused": "true"}
		}
		summary.Types, summary.Generation = types[i], seen
		for _, c := range status.Summarize(summary) {
			c.LastTransitionTime = metav1.Unix(0, 0)
			item := must.Get(runtime.DefaultUnstructuredConverter.ToUnstructured(&c)).In(t)
			list = append(list, item)
		}
	}
	object["status"] = map[string]any{}
	if len(list) > 0 {
		object["status"] = map[string]any{"observedGeneration": seen, "conditions": list}
	}
	return &unstructured.Unstructured{Object: object}
}

// runLua runs a health check as Argo CD does: with the same interpreter, the same libraries, and obj as a table.
func runLua(t *testing.T, script string, object *unstructured.Unstructured) (health, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase,
		lua.TabLibName: lua.OpenTable} {
		must.Do(t, l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	l.SetGlobal("obj", luaValue(l, object.Object))
	if err := l.DoString(script); err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("it returns %s, not a table\n%s", l.Get(-1).Type(), script)
	}
	return table.RawGetString("status").String(), table.RawGetString("message").String()
}

func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case []any:
		table := l.CreateTable(len(v), 0)
		for _, item := range v {
			table.Append(luaValue(l, item))
		}
		return table
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}

// fluxSays evaluates the expressions by Flux's own code.
func fluxSays(t *testing.T, health healthchecks.Health, object *unstructured.Unstructured) kstatus.Status {
	t.Helper()
	entry := health.Flux()
	evaluator := must.Get(fluxcel.NewStatusEvaluator(&kustomize.HealthCheckExpressions{
		Current: entry["current"].(string), Failed: entry["failed"].(string)})).In(t)
	result := must.Get(evaluator.Evaluate(t.Context(), object)).In(t)
	return result.Status
}

// TestHealthOfTheCoreGroup: its kinds have no group in Argo CD's key, and Services no generation.
func TestHealthOfTheCoreGroup(t *testing.T) {
	f := &load.File{}
	f.Metadata.Name, f.Watch, f.Status.Conditions.Ready = "a", config.Watch{APIVersion: "v1", Kind: "Service"}, "Ready"
	list, _ := healthchecks.Of([]*load.File{f})
	must.Same(t, "resource.customizations.health.Service", list[0].ArgoCDKey(), "the key")
	script := must.Get(list[0].ArgoCD()).In(t)
	for value, want := range map[string]struct {
		argo string
		flux kstatus.Status
	}{"True": {"Healthy", kstatus.CurrentStatus}, "False": {"Progressing", kstatus.InProgressStatus}} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "x"},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": value, "reason": "Progressing"}}}}}
		if got, message := runLua(t, script, object); got != want.argo {
			t.Errorf("Ready is %s: Argo CD: %s, %q; want %s", value, got, message, want.argo)
		}
		must.Same(t, want.flux, fluxSays(t, list[0], object), "Ready is", value, "Flux")
	}
}

// TestNoHealth: an operator that writes no status says nothing of an object's health.
func TestNoHealth(t *testing.T) {
	off := false
	f := &load.File{}
	f.Metadata.Name, f.Status.Enabled = "quiet", &off
	list, silent := healthchecks.Of([]*load.File{f})
	if len(list) != 0 || len(silent) != 1 || silent[0] != "quiet" {
		t.Errorf("kinds %v, silent %v; want none, and quiet", list, silent)
	}
}
