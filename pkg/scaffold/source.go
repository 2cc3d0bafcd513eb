package scaffold

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// source is an object on its way to become a downstream: as its author wrote it, and as kubectl reads it. The two are
// changed together.
type source struct {
	where string // file and document
	// downstream is the name that it gets in the config.
	downstream string
	kind       schema.GroupVersionKind
	namespaced bool
	// name and namespace are the manifest's own.
	name, namespace string

	root  *yaml.Node
	value map[string]any
	// bound are the nodes that hold a mark in place of the author's text.
	bound map[*yaml.Node]bool
	// anyNamespace: its namespace follows from the custom resource.
	anyNamespace bool
	// dropped are fields that were left out, since an API server had set them.
	dropped []string
	// generated are the paths of values that are random.
	generated []string
}

// newManifest takes an object apart: what identifies it, and what a template says of it. Status and everything that an
// API server or its clients have set by themselves is left out.
func newManifest(value map[string]any, root *yaml.Node, where string) (*source, error) {
	u := &unstructured.Unstructured{Object: value}
	for _, field := range []struct{ name, value string }{
		{"apiVersion", u.GetAPIVersion()}, {"kind", u.GetKind()}, {"metadata.name", u.GetName()},
	} {
		if field.value == "" {
			return nil, fmt.Errorf("%s is missing", field.name)
		}
	}
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("it is not an object")
	}
	s := &source{
		where: where, kind: u.GroupVersionKind(), name: u.GetName(), namespace: u.GetNamespace(),
		root: root, value: value, bound: map[*yaml.Node]bool{},
	}
	s.clean()
	return s, nil
}

// templated are the fields of metadata that a template may set; the others are an API server's or a person's affair.
var templated = []string{"name", "labels", "annotations"}

// bookkeeping are the domains of annotations on an object in which kubectl and controllers keep their own state.
var bookkeeping = []string{"kubectl.kubernetes.io", "deployment.kubernetes.io", "pv.kubernetes.io",
	"control-plane.alpha.kubernetes.io"}

// assigned are the fields that an API server fills in where they are empty, each value for one object alone.
var assigned = map[string][]string{
	"Service":               {"clusterIP", "clusterIPs"},
	"PersistentVolumeClaim": {"volumeName"},
}

func (s *source) clean() {
	live := s.holds("metadata", "uid")
	lead := s.root.Content[0].HeadComment
	s.drop("apiVersion")
	s.drop("kind")
	status, _ := s.value["status"].(map[string]any)
	s.note(s.drop("status") && len(status) > 0, "status")
	metadata, _ := s.value["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !slices.Contains(templated, key) && s.drop("metadata", key) && key != "namespace" && key != "creationTimestamp" {
			s.note(true, "metadata."+key)
		}
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if domain, _, _ := strings.Cut(key, "/"); slices.Contains(bookkeeping, domain) {
			s.note(s.drop("metadata", "annotations", key), key)
		}
	}
	if s.kind.Group == "" && s.kind.Kind == "Namespace" {
		s.drop("metadata", "labels", corev1.LabelMetadataName)
		if s.drop("spec", "finalizers") {
			s.dropWhereEmpty("spec")
		}
	}
	if live {
		for _, field := range assigned[s.kind.Kind] {
			if spec, _ := s.value["spec"].(map[string]any); spec[field] != "None" {
				s.note(s.drop("spec", field), "spec."+field)
			}
		}
	}
	s.dropWhereEmpty("metadata", "annotations")
	s.dropWhereEmpty("metadata", "labels")
	dropEmpty(s.root, s.value)
	if first := s.root.Content[0]; first.HeadComment == "" {
		first.HeadComment = lead // what the author says of the whole
	}
}

// dropMarks leaves out what the conventions put on every object: a manifest read back from a cluster has the marks of
// whoever made it.
func (s *source) dropMarks(shared *Conventions) {
	labels, annotations := shared.marks()
	for _, keys := range []struct {
		field string
		list  []string
	}{{"labels", labels}, {"annotations", annotations}} {
		slices.Sort(keys.list)
		for _, key := range slices.Compact(keys.list) {
			s.note(s.drop("metadata", keys.field, key), key)
		}
		s.dropWhereEmpty("metadata", keys.field)
	}
}

func (s *source) note(dropped bool, field string) {
	if dropped {
		s.dropped = append(s.dropped, field)
	}
}

func (s *source) holds(path ...string) bool {
	_, ok, err := unstructured.NestedFieldNoCopy(s.value, path...)
	return ok && err == nil
}

// drop leaves a field out; false: there was none.
func (s *source) drop(path ...string) bool {
	if !s.holds(path...) {
		return false
	}
	n, last := s.root, path[len(path)-1]
	for _, key := range path[:len(path)-1] {
		n = mapEntry(n, key)
	}
	dropEntry(n, last)
	unstructured.RemoveNestedField(s.value, path...)
	return true
}

// dropWhereEmpty leaves out a map with nothing in it.
func (s *source) dropWhereEmpty(path ...string) {
	if m, ok, _ := unstructured.NestedMap(s.value, path...); ok && len(m) == 0 {
		s.drop(path...)
	}
}

// dropEmpty leaves out what kubectl and client libraries write into every workload without meaning anything by it.
func dropEmpty(n *yaml.Node, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range []string{"creationTimestamp", "strategy", "resources"} {
			child, given := v[key]
			if m, isMap := child.(map[string]any); given && (child == nil || isMap && len(m) == 0) {
				dropEntry(n, key)
				delete(v, key)
			}
		}
		for key, child := range v {
			dropEmpty(mapEntry(n, key), child)
		}
	case []any:
		for i, child := range v {
			dropEmpty(n.Content[i], child)
		}
	}
}

// setNamespace keeps the namespace, for an upstream that has none to give.
func (s *source) setNamespace() {
	metadata, _ := s.value["metadata"].(map[string]any)
	metadata["namespace"] = s.namespace
	key, value := &yaml.Node{Kind: yaml.ScalarNode, Value: "namespace"},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.namespace}
	n := mapEntry(s.root, "metadata")
	n.Content = append(n.Content, key, value)
}

// generatedLines are the lines of a downstream that say what is generated; empty for nothing.
func (s *source) generatedLines() string {
	var items []string
	for _, path := range s.generated {
		items = append(items, fmt.Sprintf("{path: %q, length: 32}", path))
	}
	return strings.Join(items, ", ")
}
