package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/document"
)

// minimal is a config in which only what must be given is given. Each of the %s takes more lines.
const minimal = `apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: app}
watch: {apiVersion: tools.example.com/v1, kind: App}
%sdownstreams:
  - name: web
    apiVersion: v1
    kind: ConfigMap
%sconventions:
  fieldManager: app
  labels: {tools.example.com/by: app}
  hash: {annotation: tools.example.com/hash}
status: {conditions: {ready: Ready}}
`

func write(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(t, os.WriteFile(name, []byte(text), 0o644))
}

// loadText loads one config from standard input.
func loadText(t *testing.T, text string, set ...string) (*File, config.Errors) {
	t.Helper()
	files, errs := Operators(Options{Files: []string{"-"}, Stdin: strings.NewReader(text), Set: set})
	if len(files) != 1 {
		t.Fatalf("%d files: %v", len(files), errs)
	}
	return files[0], errs
}

func TestDefaults(t *testing.T) {
	f, errs := loadText(t, fmt.Sprintf(minimal, "validate: [{rule: \"true\"}]\n", "    template: x\n"))
	must.Do(t, errs.Err())
	yes := true
	five := 5
	want := config.Operator{
		APIVersion: config.APIVersion, Kind: config.Kind, Metadata: common.Metadata{Name: "app"},
		Runtime:  config.Runtime{Mode: config.ModeEnforce},
		Watch:    config.Watch{APIVersion: "tools.example.com/v1", Kind: "App"},
		Validate: []config.Rule{{Rule: "true", Reason: "FieldValueInvalid"}},
		Downstreams: []config.Downstream{{
			Name: "web", APIVersion: "v1", Kind: "ConfigMap", When: "true", Template: "x",
			Ready:            config.Ready{ObservedGeneration: config.ObservedAuto},
			TargetNamespaces: config.TargetNamespaces{From: config.NamespacesSame}, AdoptionPolicy: config.AdoptNever,
			UpdatePolicy: config.UpdateApply,
			Ownership:    config.OwnershipObject, DeletionPolicy: config.DeletionDelete, Drift: config.Drift{Policy: config.DriftEnforce},
		}},
		Templating: config.Templating{Delimiters: []string{"{{", "}}"}},
		Conventions: config.Conventions{
			FieldManager: "app", Labels: map[string]string{"tools.example.com/by": "app"},
			Hash: config.Hash{Annotation: "tools.example.com/hash", Algorithm: config.SHA256}, Owner: config.Owner{Reference: &yes},
		},
		Deletion:     config.Deletion{Propagation: config.PropagationBackground},
		Status:       config.Status{Enabled: &yes, Conditions: config.Conditions{Ready: "Ready"}},
		Guard:        &config.Guard{MaxDeleted: "10%", Minimum: &five},
		Events:       config.EventsWarnings,
		Retry:        config.Retry{MinDelay: common.Duration(5 * time.Second), MaxDelay: common.Duration(5 * time.Minute)},
		ResyncPeriod: common.Duration(10 * time.Hour),
	}
	must.Same(t, want, f.Operator)
	if !f.Valid() || f.Path != document.StdinName {
		t.Errorf("valid %v, path %s", f.Valid(), f.Path)
	}
}

// The defaults of what is not there unless it is written.
func TestDefaultsOfParts(t *testing.T) {
	f, errs := loadText(t, strings.Replace(fmt.Sprintf(minimal, `guard: {}
inputs: [{name: a, apiVersion: v1, kind: ConfigMap, fixedName: x}]
deletion: {before: {apiVersion: v1, kind: Job, template: x, doneWhen: "true"}}
`, "    template: x\n"), "  hash:", "  finalizer: tools.example.com/x\n  hash:", 1), "app:.status.downstreams=.status.x")
	must.Do(t, errs.Err())
	five := 5
	for _, tc := range []struct{ got, want any }{
		{f.Guard, &config.Guard{MaxDeleted: "10%", Minimum: &five}},
		{f.Inputs[0].Missing, config.MissingWait},
		{f.Deletion.Before, &config.Before{
			APIVersion: "v1", Kind: "Job", Template: "x", DoneWhen: "true", When: "true", FailedWhen: "false",
			TargetNamespaces: config.TargetNamespaces{From: config.NamespacesSame}, OnFailure: config.BeforeHold,
			OnTimeout: config.BeforeHold, Timeout: common.Duration(time.Hour),
		}},
	} {
		must.Same(t, tc.want, tc.got)
	}
}

func TestOverrides(t *testing.T) {
	files, errs := Operators(Options{
		Files: []string{"-"},
		Stdin: strings.NewReader(fmt.Sprintf(minimal, "", "    template: x\n")),
		Env: []string{
			"COROLLARY_SET_2=app:.events=All", "COROLLARY_SET_1=app:.events=None", "COROLLARY_SET_3=app:.resyncPeriod=1h",
			"COROLLARY_PORT=tcp://10.0.0.1:80", "PATH=/bin",
		},
		Set: []string{
			"app:.resyncPeriod=2h", "app:.conventions.labels['app.kubernetes.io/x']=part", "app:.downstreams[name=web].when=self.a == 'x=y'",
			"app:.watch.namespaces=[a, b]", `app:.conventions.labels['tools.example.com/n']="1.10"`,
			"app:.parameters={big: 9007199254740993, f: 1.5}",
		},
	})
	must.Do(t, errs.Err())
	op := files[0].Operator
	for _, tc := range []struct {
		reason    string
		got, want any
	}{
		{"later names of the environment win", op.Events, config.EventsAll},
		{"flags win over the environment", op.ResyncPeriod, common.Duration(2 * time.Hour)},
		{"keys with dots stay one key beside the file's own", op.Conventions.Labels, map[string]string{
			"tools.example.com/by": "app", "app.kubernetes.io/x": "part", "tools.example.com/n": "1.10",
		}},
		{"a value may hold = and quotes", op.Downstreams[0].When, "self.a == 'x=y'"},
		{"a list is replaced whole", op.Watch.Namespaces, []string{"a", "b"}},
		{"integers beyond 2^53 survive", op.Parameters, map[string]any{"big": int64(9007199254740993), "f": 1.5}},
		{"and the file is valid", files[0].Valid(), true},
	} {
		must.Same(t, tc.want, tc.got, tc.reason)
	}
}

// A mounted ConfigMap is a directory of links to ..data/FILE, itself a link to a directory of the time of writing.
func TestMountedConfigMap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conf")
	stamp := "..2026_11_20_10_00_00.123"
	write(t, filepath.Join(dir, stamp, "app.yaml"), fmt.Sprintf(minimal, "", "    templateFile: web.tmpl\n"))
	write(t, filepath.Join(dir, stamp, "web.tmpl"), "metadata: {}\n")
	write(t, filepath.Join(dir, "deeper", "not-read.yaml"), "x")
	for link, target := range map[string]string{
		"..data": stamp, "app.yaml": "..data/app.yaml", "web.tmpl": "..data/web.tmpl", "dir.yaml": "deeper",
	} {
		must.Do(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	files, errs := Operators(Options{Files: []string{dir}})
	must.Do(t, errs.Err())
	if len(files) != 1 || files[0].Path != filepath.Join(dir, "app.yaml") || files[0].Downstreams[0].Template != "metadata: {}\n" {
		t.Errorf("%d files", len(files))
	}

	must.Do(t, os.Symlink("..data/gone.yaml", filepath.Join(dir, "gone.yaml")))
	if _, errs = Operators(Options{Files: []string{dir}}); len(errs) != 1 || errs[0].File != filepath.Join(dir, "gone.yaml") {
		t.Errorf("a link to nowhere: %v", errs)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	write(t, big, strings.Repeat("# filler\n", maxFile/9+1))
	_, errs := Operators(Options{Files: []string{big}})
	if len(errs) != 1 || errs[0].Problem != "cannot be read: it is larger than 8 MiB" {
		t.Errorf("a file without end: %v", errs)
	}
}

// A file that is wrong does not make the others invalid, and they are returned too.
func TestValid(t *testing.T) {
	dir := t.TempDir()
	good := fmt.Sprintf(minimal, "", "    template: x\n")
	write(t, filepath.Join(dir, "a.yaml"), good)
	write(t, filepath.Join(dir, "b.yaml"), strings.NewReplacer("app}", "b}", "fieldManager: app", "fieldManager: b", "kind: App", "kind: B",
		"events", "x").Replace(good)+"evnts: All\n")
	write(t, filepath.Join(dir, "c.yaml"), "- not\n- an operator\n")
	files, errs := Operators(Options{Files: []string{dir}})
	if len(files) != 2 || len(errs) != 2 || !files[0].Valid() || files[1].Valid() {
		t.Errorf("%d files, %v", len(files), errs)
	}
	if err := errs.Err(); err == nil || err.Error() != errs.Error() {
		t.Errorf("Err gives %v", err)
	}
	if err := (config.Errors{}).Err(); err != nil {
		t.Errorf("no errors are %v", err)
	}
}

// A config that requires a later program is refused by this one; a program that was built without a version takes it.
func TestRequiresCorollary(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "app.yaml")
	for _, row := range []struct{ reason, wanted, program, problem string }{
		{"older", ">=0.9.0", "v0.8.3", path + ":5: requires.corollary: this is Corollary 0.8.3, and the config requires >=0.9.0: upgrade"},
		{"the same", ">=0.9.0", "v0.9.0", ""},
		{"two numbers", ">=0.9", "v0.9.1", ""},
		{"as numbers, not as text", ">=0.9.0", "v0.10.0", ""},
		{"a release candidate of it", ">=0.9.0", "v0.9.0-rc.1", ""},
		{"a build of a checkout", ">=0.9.0", "(devel)", ""},
		{"one without a tag", ">=0.9.0", "v0.0.0-20261123051205-076862b7aa76+dirty", ""},
		{"not asked", ">=0.9.0", "", ""},
	} {
		write(t, path, fmt.Sprintf(minimal, "requires: {corollary: \""+row.wanted+"\"}\n", "    template: \"metadata: {name: a}\"\n"))
		_, errs := Operators(Options{Files: []string{path}, Program: row.program})
		if (len(errs) > 0) != (row.problem != "") || len(errs) > 0 && !strings.Contains(errs.Error(), row.problem) {
			t.Errorf("%s: %v", row.reason, errs)
		}
	}
}
