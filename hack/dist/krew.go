package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/yaml"
)

// writeKrew writes the manifest by which krew, the plugin manager of kubectl,
// installs the program as `kubectl corollary`.
func (r *release) writeKrew(context.Context) error {
	var list []any
	for _, p := range r.platforms {
		name := r.archive(p)
		list = append(list, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      fmt.Sprintf("https://%s/releases/download/%s/%s", module, r.version, name),
			"sha256":   r.checksums[name],
			"bin":      p.program(),
			"files":    []any{map[string]any{"from": p.program(), "to": "."}, map[string]any{"from": "LICENSE", "to": "."}},
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "corollary"},
		"spec": map[string]any{
			"version":          r.version,
			"homepage":         "https://" + module,
			"shortDescription": "Check, preview and explain operators in YAML",
			"description": "Corollary runs Kubernetes operators that are defined in a YAML file. With this\n" +
				"plugin you write such a file, check and test it without a cluster, preview what\n" +
				"it would change, and explain the state of every object.\n",
			"platforms": list,
		},
	})
	if err != nil {
		return fmt.Errorf("writing the krew manifest: %w", err)
	}
	return r.write("corollary.krew.yaml", text)
}
