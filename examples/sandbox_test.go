package examples_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/config/common"
	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/kinds/discovered"
)

// sandboxLabel is a label of the upstreams and downstreams of one sandbox.
const sandboxLabel = "sandbox.example.com/id"

// stage is what sandboxes share.
type stage struct {
	cluster *discovered.Cluster
	mirrors map[schema.GroupVersionResource]*testkit.Mirror
}

// sandbox is an example in namespaces of its own, with upstreams that no other sandbox's operators watch: many can run
// side by side.
type sandbox struct {
	*stage
	example
	t  *testing.T
	id string
	// names are the sandbox's own, by those of the example: namespaces and cluster-scoped upstreams.
	names map[string]string
	// kinds are those of the example's upstreams, downstreams and objects of deletion.before.
	kinds []*kinds.Kind
	// reporting are the kinds whose status is ours.
	reporting []string
	// least is how many objects there are at least once everything has been created.
	least int
}

// newStage watches the kinds of examples, and runs the controllers of others.
func newStage(t *testing.T, controllers controllers, list ...example) *stage {
	t.Helper()
	cluster := must.Get(discovered.New(testkit.Config(t))).In(t)
	s := &stage{cluster: cluster, mirrors: map[schema.GroupVersionResource]*testkit.Mirror{}}
	watch := func(gvr schema.GroupVersionResource) {
		if s.mirrors[gvr] != nil {
			return
		}
		control := controllers[gvr]
		s.mirrors[gvr] = testkit.NewMirror(t, gvr, func(u *unstructured.Unstructured) {
			if control != nil && strings.HasPrefix(u.GetNamespace(), "testexamples") {
				control(u.DeepCopy())
			}
		})
	}
	watch(namespaces)
	if controllers[deployments] == nil { // kube-controller-manager creates these
		watch(replicaSets)
	}
	for _, e := range list {
		for _, k := range s.kindsOf(t, e.load(t)) {
			watch(k.GVR)
		}
	}
	return s
}

// kindsOf are the kinds of what the configs watch and make.
func (s *stage) kindsOf(t *testing.T, files []*load.File) []*kinds.Kind {
	t.Helper()
	var list []*kinds.Kind
	add := func(apiVersion, kind string) {
		k := must.Get(s.cluster.Kind(schema.FromAPIVersionAndKind(apiVersion, kind))).In(t)
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	for _, f := range files {
		add(f.Watch.APIVersion, f.Watch.Kind)
		for _, d := range f.Downstreams {
			add(d.APIVersion, d.Kind)
		}
		if b := f.Deletion.Before; b != nil {
			add(b.APIVersion, b.Kind)
		}
	}
	return list
}

// sandbox makes one for a test.
func (s *stage) sandbox(t *testing.T, e example) *sandbox {
	t.Helper()
	b := &sandbox{stage: s, example: e, t: t, id: testkit.Unique(t), names: map[string]string{}, kinds: s.kindsOf(t, e.load(t))}
	rendered := b.documents("rendered.yaml")
	for _, f := range e.load(t) {
		if f.Status.Enabled == nil || *f.Status.Enabled {
			b.reporting = append(b.reporting, f.Watch.Kind)
		}
	}
	upstreams := b.documents("cr.yaml")
	b.least = len(upstreams) + len(rendered)
	for _, u := range slices.Concat(b.documents("inputs.yaml"), upstreams, rendered) {
		name := u.GetNamespace()
		if u.GetKind() == "Namespace" && len(u.GetOwnerReferences()) == 0 {
			name = u.GetName()
		}
		switch {
		case name != "" && b.names[name] == "":
			b.names[name] = testkit.Namespace(t)
		case name == "" && u.GetKind() != "Namespace":
			b.names[u.GetName()] = b.id
		}
	}
	return b
}

// documents are those of one of the example's files; none if it does not have it.
func (b *sandbox) documents(file string) []*unstructured.Unstructured {
	if _, err := os.Stat(b.path(file)); err != nil {
		return nil
	}
	return documents(b.t, b.path(file))
}

// apply applies an object of the example; an upstream has the sandbox's label.
func (b *sandbox) apply(u *unstructured.Unstructured, labels map[string]string) {
	b.t.Helper()
	u = u.DeepCopy()
	all := maps.Clone(labels)
	maps.Copy(all, u.GetLabels())
	u.SetLabels(all)
	annotations := u.GetAnnotations()
	for key, value := range annotations {
		annotations[key] = b.words(value)
	}
	u.SetAnnotations(annotations)
	u.SetName(b.nameOf(u.GetNamespace(), u.GetName()))
	testkit.Apply(b.t, b.names[u.GetNamespace()], marshal(b.t, u))
}

// words puts the sandbox's names for those of the example in a text.
func (b *sandbox) words(text string) string {
	return word.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(b.names[name], name) })
}

var word = regexp.MustCompile(`[a-z0-9-]+`)

// nameOf is the sandbox's name for an object of the example: another one if it is cluster-scoped.
func (b *sandbox) nameOf(namespace, name string) string {
	if namespace == "" {
		return b.names[name]
	}
	return name
}

// load reads the example's configs for the sandbox.
func (b *sandbox) load() []*load.File {
	files := b.example.load(b.t)
	template := regexp.MustCompile(`(?m)^(\s*namespace: )(\S+)$`)
	for _, f := range files {
		f.Metadata.Name += "-" + b.id[strings.LastIndex(b.id, "-")+1:]
		f.Retry.MinDelay, f.Retry.MaxDelay = common.Duration(time.Second), common.Duration(time.Second)
		f.Conventions.Labels = maps.Clone(f.Conventions.Labels)
		f.Conventions.Labels[sandboxLabel] = b.id
		if f.Watch.LabelSelector == nil {
			f.Watch.LabelSelector = &metav1.LabelSelector{}
		}
		metav1.AddLabelToSelector(f.Watch.LabelSelector, sandboxLabel, b.id)
		b.rename(f.Watch.Namespaces)
		for i := range f.Inputs {
			if own := b.names[f.Inputs[i].Namespace]; own != "" {
				f.Inputs[i].Namespace = own
			}
		}
		for i := range f.Downstreams {
			d := &f.Downstreams[i]
			b.rename(d.TargetNamespaces.Names)
			d.Template = template.ReplaceAllStringFunc(d.Template, func(line string) string {
				part := template.FindStringSubmatch(line)
				if own := b.names[part[2]]; own != "" {
					return part[1] + own
				}
				return line
			})
		}
	}
	return files
}

func (b *sandbox) rename(namespaces []string) {
	for i, name := range namespaces {
		namespaces[i] = b.names[name]
	}
}

// start runs the example's operators.
func (b *sandbox) start(cfg *rest.Config) (stop func()) {
	_, stop = launch(b.t, cfg, b.load())
	return stop
}

// objects are all that the sandbox has of the example's kinds.
func (b *sandbox) objects() []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	for _, k := range b.kinds {
		if k.Namespaced {
			for _, ns := range b.namespaces() {
				list = append(list, b.mirrors[k.GVR].In(ns)...)
			}
			continue
		}
		for _, u := range b.mirrors[k.GVR].In("") {
			if u.GetLabels()[sandboxLabel] == b.id {
				list = append(list, u)
			}
		}
	}
	return list
}

// namespaces are those of the sandbox, what its operators have made included.
func (b *sandbox) namespaces() []string {
	list := slices.Collect(maps.Values(b.names))
	for _, u := range b.mirrors[namespaces].In("") {
		if u.GetLabels()[sandboxLabel] == b.id && !slices.Contains(list, u.GetName()) {
			list = append(list, u.GetName())
		}
	}
	return list
}

// managed counts the upstreams and downstreams.
func (b *sandbox) managed() int {
	n := 0
	for _, u := range b.objects() {
		if u.GetLabels()[sandboxLabel] == b.id {
			n++
		}
	}
	return n
}

// unready says which upstream is not ready, of those whose status is ours.
func (b *sandbox) unready() string {
	for _, u := range b.objects() {
		if slices.Contains(b.reporting, u.GetKind()) {
			if why := (fields{".status.conditions[type=Ready].status": "True"}).missing(u); why != "" {
				return u.GetName() + ": " + why
			}
		}
	}
	return ""
}

// ids finds what is another one in each sandbox: uids, hashes, and random values of 32 characters in base64.
var ids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|v\d+-[0-9a-v]{52}|\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\.\d+|"[0-9A-Za-z+/]{43}="`)

// picture shows the sandbox's objects in text that is the same for sandboxes that are alike: names as in the example,
// uids and hashes numbered, no times and versions.
func (b *sandbox) picture() string {
	theirs := b.replacer()
	var texts []string
	for _, u := range b.objects() {
		text := must.Get(json.MarshalIndent(b.essence(u), "", " ")).In(b.t)
		texts = append(texts, theirs.Replace(string(text)))
	}
	slices.SortFunc(texts, func(x, y string) int {
		return strings.Compare(ids.ReplaceAllString(x, ""), ids.ReplaceAllString(y, ""))
	})
	numbers := map[string]string{}
	return ids.ReplaceAllStringFunc(strings.Join(texts, "\n"), func(id string) string {
		if numbers[id] == "" {
			numbers[id] = fmt.Sprintf("#%d", len(numbers)+1)
		}
		return numbers[id]
	})
}

// replacer puts the example's names for the sandbox's.
func (b *sandbox) replacer() *strings.Replacer {
	list := []string{}
	for theirs, own := range b.names {
		list = append(list, own, theirs)
	}
	list = append(list, b.id, "ID")
	return strings.NewReplacer(list...)
}

// essence is an object without what the API server and the controllers of others make of it.
func (b *sandbox) essence(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	generation := u.GetGeneration()
	for _, field := range []string{"resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(u.Object, "spec", field)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "deployment.kubernetes.io/revision") // the number of changes
	if !slices.Contains(b.reporting, u.GetKind()) {
		delete(u.Object, "status")
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "lastTransitionTime")
			if v["baseline"] != nil {
				v["baseline"] = "known" // how empty values are stored depends on what was there before
			}
			if v["observedGeneration"] == generation {
				v["observedGeneration"] = "current"
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(u.Object)
	return u.Object
}
