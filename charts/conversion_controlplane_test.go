//go:build controlplane

package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	t.Parallel()
	certManager := map[string]any{"certManager": map[string]any{"enabled": true}}
	cases := map[string]rightsCase{
		"run writes spec.conversion":    {conversions: conversionFiles(t, map[string]string{"App": ""})},
		"somebody else does":            {conversions: conversionFiles(t, map[string]string{"App": "publish: Verify\n"})},
		"cert-manager keeps the Secret": {conversions: conversionFiles(t, map[string]string{"App": ""}), certificate: certManager},
		"somebody keeps a Secret": {
			conversions: conversionFiles(t, map[string]string{"App": ""}), secret: "served",
			certificate: map[string]any{"existingSecret": "served"},
		},
		"all of it": {conversions: conversionFiles(t, map[string]string{
			"App": "publish: Verify\nmigrate: Auto\n", "Job": "migrate: Auto\n", "Tool": "",
		})},
	}
	compareRights(t, cases)
}

// conversionFiles writes a file for each kind, with lines of the config.
func conversionFiles(t *testing.T, lines map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for kind, more := range lines {
		text := strings.NewReplacer("KIND", kind, "NAME", strings.ToLower(kind)).Replace(conversionDocument) + more
		path := filepath.Join(dir, kind+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}
