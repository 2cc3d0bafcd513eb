package generate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
)

// BundleOptions are what a bundle for the Operator Lifecycle Manager says besides the configs.
type BundleOptions struct {
	// Package is the name of the package, a DNS label: of the ClusterServiceVersion too (with .vVERSION), of the
	// Deployment, its ServiceAccount, its Lease and its ConfigMap.
	Package string
	// Version is a semantic version without v, such as 1.2.3.
	Version string
	// Image is the container image of Corollary.
	Image string
	// Channels are what the bundle is offered in; the first is the default one.
	Channels []string
	// Replaces is the name of the ClusterServiceVersion that this one replaces; it may be empty.
	Replaces string
	// Definitions are CustomResourceDefinitions; those of the watched kinds go into the bundle.
	Definitions []*unstructured.Unstructured
	// Samples are custom resources that a console offers to begin with.
	Samples []*unstructured.Unstructured
	// Read gives the content of a file.
	Read func(path string) ([]byte, error)
	// Kinds knows the resource and the scope of kinds.
	Kinds kinds.Source
}

// BundleFile is one file of a bundle.
type BundleFile struct {
	// Path is below the bundle's folder, with /.
	Path string
	// Content is an object to be written as YAML; Text what to write as it is where Content is nil.
	Content map[string]any
	Text    string
}

// bundleNamespace is a placeholder for the namespace into which OLM installs, which is not known before.
const bundleNamespace = "(installed)"

// Bundle makes an OLM bundle in the format registry+v1: a ClusterServiceVersion with the rights that the configs need,
// the configs as a ConfigMap, the definitions of the watched kinds, and the annotations. Notes are what a person should
// know of it. An error names what OLM cannot do: it grants to the accounts of the bundle alone, and not in namespaces
// of one's choice.
func Bundle(files []*load.File, o BundleOptions) (list []BundleFile, notes []string, err error) {
	b := &bundle{BundleOptions: o, files: files}
	configs, err := b.configMap()
	if err != nil {
		return nil, nil, err
	}
	version, err := b.clusterServiceVersion()
	if err != nil {
		return nil, nil, err
	}
	list = []BundleFile{
		{Path: "manifests/" + o.Package + ".clusterserviceversion.yaml", Content: version},
		{Path: "manifests/" + o.Package + ".configmap.yaml", Content: configs},
	}
	for _, d := range b.owned {
		list = append(list, BundleFile{Path: "manifests/" + d.GetName() + ".crd.yaml", Content: d.Object})
	}
	return append(list,
		BundleFile{Path: "metadata/annotations.yaml", Content: map[string]any{"annotations": b.annotations()}},
		BundleFile{Path: "bundle.Dockerfile", Text: b.dockerfile()}), b.notes, nil
}

type bundle struct {
	BundleOptions
	files []*load.File
	owned []*unstructured.Unstructured
	notes []string
}

// configMap holds the configs and the files that they name, all beside each other, since keys have no folders.
func (b *bundle) configMap() (map[string]any, error) {
	v := newChartValues(b.Read)
	v.flat = true
	data := map[string]any{}
	for _, f := range b.files {
		if err := v.add(f); err != nil {
			return nil, fmt.Errorf("operator %s: %w", f.Metadata.Name, err)
		}
	}
	for name, text := range v.operators {
		data[name+".yaml"] = text
	}
	for name, text := range v.files {
		if _, taken := data[name]; taken {
			return nil, fmt.Errorf("%s would be mounted over the config of operator %s: rename it", v.from[name],
				strings.TrimSuffix(name, ".yaml"))
		}
		data[name] = text
	}
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": b.Package}, "data": data}, nil
}

func (b *bundle) clusterServiceVersion() (map[string]any, error) {
	install, err := b.install()
	if err != nil {
		return nil, err
	}
	definitions, err := b.definitions()
	if err != nil {
		return nil, err
	}
	samples := make([]any, len(b.Samples))
	for i, s := range b.Samples {
		samples[i] = s.Object
	}
	examples, err := indentedJSON(samples)
	if err != nil {
		return nil, err
	}
	spec := map[string]any{
		"displayName": b.Package,
		"description": b.description(),
		"version":     b.Version,
		"maturity":    "stable",
		// As the Helm chart has it.
		"minKubeVersion": "1.30.0",
		// OLM refuses a version that does not say what it may be installed for.
		"installModes": []any{
			map[string]any{"type": "OwnNamespace", "supported": false},
			map[string]any{"type": "SingleNamespace", "supported": false},
			map[string]any{"type": "MultiNamespace", "supported": false},
			map[string]any{"type": "AllNamespaces", "supported": true},
		},
		"install": map[string]any{"strategy": "deployment", "spec": install},
	}
	if len(definitions) > 0 {
		spec["customresourcedefinitions"] = definitions
	}
	if b.Replaces != "" {
		spec["replaces"] = b.Replaces
	}
	return map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata": map[string]any{
			"name":        fmt.Sprintf("%s.v%s", b.Package, b.Version),
			"annotations": map[string]any{"alm-examples": examples, "capabilities": "Seamless Upgrades"},
		},
		"spec": spec,
	}, nil
}

func (b *bundle) description() string {
	var lines []string
	for _, f := range b.files {
		var made []string
		for _, d := range f.Downstreams {
			made = append(made, d.Kind)
		}
		lines = append(lines, fmt.Sprintf("* %s: from each %s follows %s.", f.Metadata.Name,
			f.Watch.Kind, strings.Join(made, ", ")))
	}
	return "Operators that Corollary runs:\n\n" + strings.Join(lines, "\n") + "\n"
}

// definitions are the watched kinds that are custom: owned where their definition is given, else required. It puts the
// definitions of those that are owned into the bundle.
func (b *bundle) definitions() (map[string]any, error) {
	var owned, required []any
	reported := map[schema.GroupVersionKind]bool{}
	for _, f := range b.files {
		gvk := schema.FromAPIVersionAndKind(f.Watch.APIVersion, f.Watch.Kind)
		known, err := b.Kinds.Kind(gvk)
		if reported[gvk] || kinds.IsBuiltin(gvk.GroupKind()) {
			continue
		}
		reported[gvk] = true
		if definition := b.definitionOf(gvk); definition != nil {
			owned = append(owned, entry(gvk, definition.GetName()))
			if !slices.Contains(b.owned, definition) { // it may define several versions that are watched
				b.owned = append(b.owned, definition)
			}
			continue
		}
		switch {
		case errors.Is(err, kinds.ErrUnknown):
			known, _ = guessed(gvk) // the rights say so already
		case err != nil:
			return nil, fmt.Errorf("looking for %s: %w", gvk.Kind, err)
		}
		b.notes = append(b.notes,
			fmt.Sprintf("the bundle requires %s; it contains its CustomResourceDefinition if that is among --crds", gvk.Kind))
		required = append(required, entry(gvk, resourceOf(known).String()))
	}
	out := map[string]any{}
	if len(owned) > 0 {
		out["owned"] = owned
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out, nil
}

func entry(gvk schema.GroupVersionKind, name string) map[string]any {
	return map[string]any{"name": name, "version": gvk.Version, "kind": gvk.Kind, "displayName": gvk.Kind,
		"description": "The desired state."}
}

func (b *bundle) definitionOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	for _, d := range b.Definitions {
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		if group == gvk.Group && kind == gvk.Kind {
			return d
		}
	}
	return nil
}

func (b *bundle) annotations() map[string]any {
	const lead = "operators.operatorframework.io.bundle."
	return map[string]any{
		lead + "mediatype.v1":       "registry+v1",
		lead + "manifests.v1":       "manifests/",
		lead + "metadata.v1":        "metadata/",
		lead + "package.v1":         b.Package,
		lead + "channels.v1":        strings.Join(b.Channels, ","),
		lead + "channel.default.v1": b.Channels[0],
	}
}

// dockerfile is of the image that carries the bundle; OLM reads its labels.
func (b *bundle) dockerfile() string {
	var out strings.Builder
	out.WriteString("FROM scratch\n")
	annotations := b.annotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fmt.Fprintf(&out, "LABEL %s=%v\n", key, annotations[key])
	}
	out.WriteString("COPY manifests /manifests/\nCOPY metadata /metadata/\n")
	return out.String()
}
