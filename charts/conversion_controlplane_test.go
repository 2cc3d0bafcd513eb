//go:build controlplane

package charts

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/generate"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

const conversionDocument = `apiVersion: corollary.dev/v1alpha1
kind: Conversion
metadata: {name: NAME}
for: {group: stable.example.com, kind: KIND}
fieldManager: conversion
hub: v1
spokes: [{version: v1beta1}]
`

// TestRightsOfConversions holds what the chart grants for conversions to what the command derives from them.
func TestRightsOfConversions(t *testing.T) {
	for _, row := range []struct {
		reason  string
		configs map[string]string // by kind: lines of the config
		values  map[string]any
	}{
		{"run writes spec.conversion", map[string]string{"App": ""}, map[string]any{"crds": []any{"apps.stable.example.com"}}},
		{"somebody else does", map[string]string{"App": "publish: Verify\n"},
			map[string]any{"crds": []any{"apps.stable.example.com"}, "verify": []any{"apps.stable.example.com"}}},
		{"cert-manager keeps the Secret", map[string]string{"App": ""}, map[string]any{"crds": []any{"apps.stable.example.com"},
			"certificate": map[string]any{"certManager": map[string]any{"enabled": true}}}},
		{"somebody keeps a Secret", map[string]string{"App": ""}, map[string]any{"crds": []any{"apps.stable.example.com"},
			"certificate": map[string]any{"existingSecret": "served"}}},
		{"all of it", map[string]string{"App": "publish: Verify\nmigrate: Auto\n", "Job": "migrate: Auto\n", "Tool": ""}, map[string]any{
			"crds":    []any{"apps.stable.example.com", "jobs.stable.example.com", "tools.stable.example.com"},
			"verify":  []any{"apps.stable.example.com"},
			"migrate": []any{"apps.stable.example.com", "jobs.stable.example.com"},
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for kind, lines := range row.configs {
				text := strings.NewReplacer("KIND", kind, "NAME", strings.ToLower(kind)).Replace(conversionDocument) + lines
				if err := os.WriteFile(filepath.Join(dir, kind+".yaml"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			conversions, problems := config.LoadConversions(config.Options{Files: []string{dir}}, nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			source, err := kinds.Offline()
			if err != nil {
				t.Fatal(err)
			}
			certificate, _ := row.values["certificate"].(map[string]any)
			secret, readOnly := "process-webhook", certificate != nil
			if name, ok := certificate["existingSecret"].(string); ok {
				secret = name
			}
			want := rights{}
			run, err := generate.Rights(nil, generate.RBACOptions{
				Kinds: source, Process: generate.Identity{Namespace: "system", Name: "process"}, Lease: "lead",
				Conversions: conversions, Secret: secret, SecretReadOnly: readOnly,
			})
			want.derived(t, run, err)
			got := granted(t, renderRights(t, chart, map[string]any{
				"conversion": row.values, "fullnameOverride": "process", "leaderElection": map[string]any{"id": "lead"},
			}))
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("the chart grants other rights than corollary generate rbac prints (- command, + chart):\n%s", diff)
			}
		})
	}
}
