package main

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// bill is a bill of materials in the format CycloneDX 1.6, with only the fields that are used.
type bill struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Ref      string    `json:"bom-ref"`
	Type     string    `json:"type"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	Purl     string    `json:"purl"`
	Hashes   []hash    `json:"hashes,omitempty"`
	Licenses []license `json:"licenses,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// bill lists the modules in a program, which the Go toolchain has recorded in it, and the standard library.
func (r *release) bill(info *debug.BuildInfo, sum string) ([]byte, error) {
	own := newComponent("application", module, r.version)
	own.Hashes = []hash{{"SHA-256", sum}}
	own.Licenses = make([]license, 1)
	own.Licenses[0].License.ID = "Apache-2.0"
	b := bill{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata:   metadata{Timestamp: r.date.Format(time.RFC3339), Component: own},
		Components: []component{newComponent("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		b.Components = append(b.Components, newComponent("library", module.Path, module.Version))
	}
	all := dependency{Ref: own.Ref}
	for _, c := range b.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
	}
	b.Dependencies = []dependency{all}
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the bill of materials: %w", err)
	}
	return append(text, '\n'), nil
}

// newComponent returns a Go module with its package URL, which scanners look up.
func newComponent(kind, path, version string) component {
	purl := "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
	return component{Ref: purl, Type: kind, Name: path, Version: version, Purl: purl}
}
