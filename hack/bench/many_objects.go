package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/hack/bench/work"
)

// kindGroups is how many API groups the kinds are in.
const kindGroups = 10

// tiers are the values of the label by which operators of one kind select custom resources. Two of the four operators
// of a kind select equally, so that they share a watch.
var tiers = []string{"shared", "shared", "third", "fourth"}

// versionAnnotation is on each ConfigMap, with a text of the config.
const versionAnnotation = "bench.example.com/version"

// fleetConfig is the config of one operator of many. Capitals are replaced.
const fleetConfig = `
apiVersion: corollary.dev/v1alpha1
kind: Operator
metadata: {name: NAME}
watch:
  apiVersion: GROUP/v1
  kind: KIND
  labelSelector: {matchLabels: {tier: TIER}}
INPUTSvalidate:
  - {rule: size(self.spec.data) <= 1000, message: at most 1000 values}
downstreams:
  - name: config
    apiVersion: v1
    kind: ConfigMap
    template: |
      metadata:
        name: "{{ .metadata.name }}-VARIANT"
        annotations: {` + versionAnnotation + `: "VERSION"REGION}
      data: {{ .spec.data }}
conventions:
  fieldManager: NAME
  labels: {` + work.ManagedLabel + `: NAME}
  hash: {annotation: bench.example.com/hash}
  owner: {reference: true}
status:
  conditions: {ready: ReadyVARIANT}
events: None
`

// member is one operator of many: variant 0 to 3 of a kind.
type member struct{ kind, variant int }

// memberAt spreads operators over the kinds: each kind has one before any has two.
func memberAt(i, kinds int) member { return member{i % kinds, i / kinds} }

func (m member) name() string { return fmt.Sprintf("kind%02d-%d", m.kind, m.variant) }
func (m member) tier() string { return tiers[m.variant] }
func (m member) group() string {
	return fmt.Sprintf("g%d.%s", m.kind%kindGroups, work.GroupVersion.Group)
}
func (m member) file() string     { return m.name() + ".yaml" }
func (m member) readsInput() bool { return m == noisy }

func (m member) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: m.group(), Version: "v1", Resource: fmt.Sprintf("kind%02ds", m.kind)}
}

// config is the config of an operator. version is a text that its ConfigMaps have.
func (m member) config(version string) string {
	inputs, region := "", ""
	if m.readsInput() {
		inputs = "inputs:\n  - {name: settings, apiVersion: v1, kind: ConfigMap, fixedName: " + work.Settings + "}\n"
		region = ", " + work.RegionAnnotation + `: '{{ (input "settings").data.region }}'`
	}
	return strings.NewReplacer("NAME", m.name(), "GROUP", m.group(), "KIND",
		fmt.Sprintf("Kind%02d", m.kind), "TIER", m.tier(),
		"INPUTS", inputs, "VARIANT", fmt.Sprint(m.variant), "VERSION", version, "REGION", region).Replace(fleetConfig)
}

// writeConfig replaces the config of an operator in a directory at once.
func (m member) writeConfig(dir, version string) error {
	temporary := filepath.Join(dir, "."+m.file())
	if err := os.WriteFile(temporary, []byte(m.config(version)), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, m.file()))
}

// fleetDefinitions are the CustomResourceDefinitions of the kinds.
func fleetDefinitions(kinds int) []string {
	var list []string
	for i := range kinds {
		m := member{kind: i}
		list = append(list, strings.NewReplacer(
			work.GroupVersion.Group, m.group(), "Widget", fmt.Sprintf("Kind%02d", i), "widget",
			fmt.Sprintf("kind%02d", i)).Replace(definition))
	}
	return list
}

// fleetSize is how many bytes of data each object has.
const fleetSize = 500

// fleetCluster writes the custom resources of one operator, and of others that select equally, and edits its
// ConfigMaps.
func fleetCluster(cfg *rest.Config, m member, objects int) (*cluster, error) {
	first := member{m.kind, slices.Index(tiers, m.tier())} // of those that select equally
	return newCluster(cfg, m.resource(), metav1.NamespaceDefault, first.name(), objects, fleetSize)
}

// createFor creates the custom resources of one operator.
func (c *cluster) createFor(ctx context.Context, m member) error {
	return c.each(ctx, 1, func(ctx context.Context, i int, name string) error {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": m.group() + "/v1", "kind": fmt.Sprintf("Kind%02d", m.kind),
			"metadata": map[string]any{"name": name, "labels": map[string]any{"tier": m.tier()}},
			"spec":     map[string]any{"data": c.data(i)},
		}}
		_, err := c.widgets.Create(ctx, u, metav1.CreateOptions{})
		return err
	})
}

// ofDownstreams are the names of the ConfigMaps instead of those of the custom resources, from one position to another.
func (c *cluster) ofDownstreams(m member, from, to int) *cluster {
	some := *c
	some.names, some.latencies = nil, nil
	for _, name := range c.names[from:to] {
		some.names = append(some.names, fmt.Sprintf("%s-%d", name, m.variant))
	}
	return &some
}
