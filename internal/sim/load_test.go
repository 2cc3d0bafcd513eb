package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
	"github.com/corollary-dev/corollary/pkg/manifest"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
)

const (
	crds     = "../../testdata/crds"
	examples = "../../examples/configs"
)

// exampleDir is the folder of an example.
func exampleDir(example string) string {
	if _, err := os.Stat(filepath.Join("testdata", example)); err == nil {
		return filepath.Join("testdata", example)
	}
	return filepath.Join(examples, example)
}

// read caches what was read of files: it is the same for all runs.
var read sync.Map

func once[T any](key string, f func() T) T {
	if known, ok := read.Load(key); ok {
		return known.(T)
	}
	known, _ := read.LoadOrStore(key, f())
	return known.(T)
}

// definitionFiles returns the files of the custom kinds.
func (s *Setup) definitionFiles() []string {
	if s.Example == "" {
		return []string{filepath.Join(crds, "widgets.yaml"), filepath.Join(crds, "teams.yaml"), filepath.Join(crds, "pools.yaml")}
	}
	path := filepath.Join(exampleDir(s.Example), "crd.yaml")
	if _, err := os.Stat(path); err != nil {
		return nil // its kinds are built in
	}
	return []string{path}
}

func (s *Setup) definitions(t testing.TB) []*unstructured.Unstructured {
	return once("definitions "+s.Example, func() []*unstructured.Unstructured {
		if len(s.definitionFiles()) == 0 {
			return nil
		}
		list := must.Get(kinds.Definitions(s.definitionFiles()...)).In(t)
		return list
	})
}

func (s *Setup) source(t testing.TB) kinds.Source {
	return once("source "+s.Example, func() kinds.Source {
		source := must.Get(kinds.Offline(s.definitionFiles()...)).In(t)
		return source
	})
}

// documents returns the objects in a file of an example.
func documents(t testing.TB, example, file string) []*unstructured.Unstructured {
	return once("documents "+example+" "+file, func() (list []*unstructured.Unstructured) {
		path := filepath.Join(exampleDir(example), file)
		if _, err := os.Stat(path); err != nil {
			return nil
		}
		read := must.Get(manifest.Read(path, nil)).In(t)
		for _, d := range read {
			object := must.Get(d.Value()).In(t)
			if object != nil {
				list = append(list, &unstructured.Unstructured{Object: object})
			}
		}
		return list
	})
}

// inputs returns objects that exist from the start.
func (s *Setup) inputs(t testing.TB) []*unstructured.Unstructured {
	namespaces := []string{"ns", "other", "system"}
	var list []*unstructured.Unstructured
	if s.Example != "" {
		list = append(list, documents(t, s.Example, "inputs.yaml")...)
		namespaces = []string{"default", "system", "platform", "team-a", "team-b"}
	}
	if s.Input != "" {
		list = append(list, configMap("settings", map[string]any{"mode": "0"}))
	}
	for _, name := range namespaces {
		if slices.ContainsFunc(list, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Namespace" && u.GetName() == name }) {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		u.SetName(name)
		list = append(list, u)
	}
	return list
}

// learnKinds reads the schemas of the kinds before the first run, so that it does not differ from the others.
func (s *Setup) learnKinds(t testing.TB, cfg *rest.Config) {
	once("learned "+s.Example+s.kind(), func() bool {
		everything := *s
		everything.Second = true
		for _, c := range compiled(t, everything, variant{}) {
			gvks := append(downstreamKinds(c.Pipeline), c.Pipeline.Upstream.GVK)
			if c.Pipeline.Before != nil {
				gvks = append(gvks, c.Pipeline.Before.Object.GVK())
			}
			for _, source := range c.Pipeline.Inputs {
				gvks = append(gvks, source.Kind.GVK)
			}
			for range 2 { // the cluster makes a document for the first request
				live := must.Get(discovered.New(cfg)).In(t)
				for _, gvk := range gvks {
					must.Get(live.Kind(gvk)).In(t)
				}
			}
		}
		return true
	})
}

// writeConfig writes the config with the changes of the reloads.
func (w *world) writeConfig() {
	if w.Setup.Example == "" {
		must.Do(w.t, os.WriteFile(filepath.Join(w.dir, "config.yaml"), []byte(w.Setup.config(w.variant)), 0o600))
	}
}

// load loads the config as a process does.
func (w *world) load() ([]*load.File, config.Errors) {
	if w.Setup.Example == "" {
		return load.Operators(load.Options{Files: []string{w.dir}})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return loadExample(w.Setup.Example, w.variant)
}

// loadExample loads an example, with shorter resyncs and retries.
func loadExample(example string, v variant) ([]*load.File, config.Errors) {
	path := filepath.Join(exampleDir(example), "operator.yaml")
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join(exampleDir(example), "operators")
	}
	files, errs := load.Operators(load.Options{Files: []string{path}})
	if len(errs) > 0 {
		return files, errs
	}
	var set []string
	for _, f := range files {
		for key, value := range map[string]string{
			"resyncPeriod": "3m", "retry.minDelay": "1s", "retry.maxDelay": "10s", "events": "None",
			"conventions.annotations['sim.example.com/template']": fmt.Sprintf("%q", fmt.Sprint(v.template)),
		} {
			set = append(set, fmt.Sprintf("%s:.%s=%s", f.Metadata.Name, key, value))
		}
	}
	if example == "tiers" {
		set = append(set, fmt.Sprintf(`space:.helpers='{{ define "tier" }}t%d{{ end }}'`, v.template),
			fmt.Sprintf("store:.watch.labelSelector={matchLabels: {tier: t%d}}", v.template))
	}
	switch name := files[0].Metadata.Name; {
	case v.broken == 2:
		set = append(set, name+":.validate=[{rule: self.spec.size >, message: broken}]")
	case v.broken > 0:
		set = append(set, name+":.unknown=true")
	}
	return load.Operators(load.Options{Files: []string{path}, Set: set})
}

// compiled returns the operators of a setup.
func compiled(t testing.TB, s Setup, v variant) []compile.Compiled {
	return once(fmt.Sprintf("compiled %+v %+v", s, v), func() []compile.Compiled {
		read := func() ([]*load.File, config.Errors) { return loadExample(s.Example, v) }
		if s.Example == "" {
			read = func() ([]*load.File, config.Errors) {
				return load.Operators(load.Options{Files: []string{"-"}, Stdin: strings.NewReader(s.config(v))})
			}
		}
		files, problems := read()
		list, problems, err := compile.All(files, problems, compile.Options{Kinds: s.source(t)})
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems, s.config(v))
		}
		return list
	})
}

// upstreamPatches are changes of the upstreams of examples, by kind, for odd values of steps.
var upstreamPatches = map[string]map[string]any{
	"Appoperator": {"tag": "1.11"},
	"Worker":      {"image": "other", "maxReplicas": int64(12)},
	"Storage":     {"archive": "s3://other"},
	"Website":     {"title": "Bread"},
	"Credentials": {"keys": []any{"username"}},
	"Migration":   {"image": "other"},
	"Proxy":       {"image": "other"},
	"Team":        {"stages": map[string]any{"dev": "edit", "test": "edit"}},
	"WebApp":      {"replicas": int64(3)},
	"Network":     {"subnets": map[string]any{"eu-1b": "10.0.64.0/18", "eu-2a": "10.0.192.0/18"}},
	"Backend":     {"team": "search"},
	"BlueGreen":   {"image": "other"},
	"Tenant":      {"users": []any{map[string]any{"name": "bob@example.com", "role": "view"}, map[string]any{"name": "carol@example.com"}}},
	"ScheduledJob": {"overlays": map[string]any{
		"staging": map[string]any{"schedule": "0 6 * * *"}, "demo": map[string]any{"env": map[string]any{"SMTP": "localhost"}},
	}},
}

func (s *Setup) upstreamOfExample(t testing.TB, which, value int) *unstructured.Unstructured {
	all := documents(t, s.Example, "cr.yaml")
	u := all[which%len(all)].DeepCopy()
	if u.GetKind() == "Space" {
		u.Object["spec"] = specOfSpace(value)
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok && value%2 == 1 {
		for key, value := range upstreamPatches[u.GetKind()] {
			spec[key] = value
		}
	}
	if data, ok := u.Object["data"].(map[string]any); ok && value%2 == 1 {
		data["value"] = "b3RoZXI=" // base64, in a Secret
	}
	return u
}

// specOfSpace is the spec of a Space: its rooms come and go, with and without a store, and all get other names.
func specOfSpace(value int) map[string]any {
	room := func(name string, store bool) any { return map[string]any{"name": name, "store": store} }
	rooms := [][]any{{room("r", false)}, {room("r", true), room("s", true)}, {room("s", true)}, {room("s", false), room("r", true)}, {}}
	return map[string]any{
		"rooms": rooms[value%len(rooms)], "prefix": []string{"p", "p", "q"}[value%3], "shared": value%2 == 0, "value": fmt.Sprint("v", value),
	}
}
