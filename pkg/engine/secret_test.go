//go:build controlplane

package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/engine"
)

// What a Secret that is an input holds is told to nobody: not in a condition, an event or the log, however a template,
// an expression or the API server complains about it.
func TestSecretInputIsNotTold(t *testing.T) {
	t.Parallel()
	const canary = "Hunter2 canary!"
	for _, row := range []struct{ reason, key, data string }{
		{"a function refuses it", "", `{x: {{ (input "settings").data.color | b64dec | semver | toJson | quote }}}`},
		{"it is no label", `labels: {secret: {{ (input "settings").data.color | b64dec | quote }}}`, "{}"},
		{"it is no name", `name: {{ (input "settings").data.color | b64dec }}`, "{}"},
		{"the template fails of its own", "", `{x: {{ fail (printf "not %s" ((input "settings").data.color | b64dec)) }}}`},
		{"it is no namespace", `namespace: {{ (input "settings").data.color | quote }}`, "{}"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			ns, name := testkit.Namespace(t), testkit.Unique(t)
			testkit.Apply(t, ns, "{apiVersion: v1, kind: Secret, metadata: {name: blue}, stringData: {color: '"+canary+"'}}")
			conf := withInputs(ns, name, "kind: ConfigMap\n    objectName", "kind: Secret\n    objectName", "events: None", "events: All")
			if row.key != "" {
				if strings.HasPrefix(row.key, "name:") {
					conf = strings.Replace(conf, "name: {{ .metadata.name }}-copy", row.key, 1)
				} else {
					conf = strings.Replace(conf, "name: {{ .metadata.name }}-copy", "name: {{ .metadata.name }}-copy\n        "+row.key, 1)
				}
			}
			at := strings.Index(conf, " data:\n") + 1 // not that of the metadata
			end := strings.Index(conf, "    # downstream")
			conf = conf[:at] + "data: " + row.data + "\n" + conf[end:]
			log := startLogged(t, conf)
			applyReader(t, ns, "a", "blue")
			var up map[string]any
			testkit.Eventually(t, patience, func() (bool, string) {
				u := testkit.Get(t, widgets, ns, "a")
				up = u.Object
				status, reason, message := condition(u, "Ready")
				return status == "False", reason + ": " + message
			})
			waitEvent(t, ns, "a", "RenderFailed", "")
			for what, value := range map[string]any{"the upstream": up, "events": testkit.List(t, events, ns, ""), "the log": log()} {
				text, _ := json.Marshal(value)
				for _, secret := range []string{canary, "SHVudGVyMiBjYW5hcnkh"} {
					if strings.Contains(string(text), secret) {
						t.Errorf("%s tells it: %s", what, text)
					}
				}
			}
		})
	}
}

// startLogged runs a config and returns what gives all that it logs.
func startLogged(t *testing.T, conf string) func() string {
	t.Helper()
	var mu sync.Mutex
	var all strings.Builder
	log := funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		all.WriteString(prefix + args + "\n")
	}, funcr.Options{Verbosity: 10})
	path := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	files, errs := config.Load(config.Options{Files: []string{path}})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	mgr, err := manager.New(testkit.Config(), manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(testkit.Config(), mgr, files, engine.Options{DiscoveryInterval: 200 * time.Millisecond, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, patience, func() (bool, string) { err := e.Ready(nil); return err == nil, text(err) })
	return func() string { mu.Lock(); defer mu.Unlock(); return all.String() }
}
