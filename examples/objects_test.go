package examples_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/controlplane"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
)

// patience is how long a test waits for what has to come.
const patience = testkit.Patience

var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps      = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods            = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets     = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	cronJobs        = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
	secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	buckets         = schema.GroupVersionResource{Group: "storage.example.com", Version: "v1", Resource: "buckets"}
	networkPolicies = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	resourceQuotas  = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	jobs            = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

// platform is a resource of the group that the examples' own kinds are in.
func platform(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "platform.example.com", Version: "v1", Resource: resource}
}

// state creates the first of an example's custom resources in a namespace ("" where it is cluster-scoped).
func state(t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return testkit.Apply(t, namespace, marshal(t, documents(t, example{filepath.Join("configs", name)}.path("cr.yaml"))[0]))
}

// fields are what is expected of an object: values by path, nil for nothing.
type fields map[string]any

// containing is a text that an expected text has in it.
type containing string

// at returns what is at a path of an object, nil where nothing is.
func at(u *unstructured.Unstructured, path string) any {
	v, _ := fieldpath.Get(u.Object, fieldpath.MustParse(path))
	return v
}

// await waits until an object has the fields and returns it.
func await(t *testing.T, gvr schema.GroupVersionResource, namespace, name string, want fields) *unstructured.Unstructured {
	t.Helper()
	var u *unstructured.Unstructured
	testkit.Eventually(t, patience, func() (bool, string) {
		if u = testkit.Find(t, gvr, namespace, name); u == nil {
			return false, gvr.Resource + " " + name + " does not exist"
		}
		why := want.missing(u)
		return why == "", gvr.Resource + " " + name + ": " + why
	})
	return u
}

// missing says what an object lacks; nothing where it is as expected. What the status says must be about the object's
// present generation, where it says which one it is about.
func (want fields) missing(u *unstructured.Unstructured) string {
	var list []string
	for path, value := range want {
		have := at(u, path)
		text, isText := have.(string)
		part, isPart := value.(containing)
		if isPart && isText && strings.Contains(text, string(part)) || !isPart && reflect.DeepEqual(have, value) {
			continue
		}
		list = append(list, fmt.Sprintf("%s is %v, not %v", path, have, value))
	}
	if seen := at(u, ".status.observedGeneration"); seen != nil && seen != u.GetGeneration() {
		list = append(list, fmt.Sprintf("its status is about generation %v, not %d", seen, u.GetGeneration()))
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// ready is what the fields of a Ready condition are.
func ready(status, reason, message string) fields {
	return fields{
		".status.conditions[type=Ready].status":  status,
		".status.conditions[type=Ready].reason":  reason,
		".status.conditions[type=Ready].message": containing(message),
	}
}

// with are the fields and some more.
func (want fields) with(more fields) fields {
	for path, value := range more {
		want[path] = value
	}
	return want
}

// gone waits until an object does not exist.
func gone(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	testkit.Eventually(t, patience, func() (bool, string) {
		return testkit.Find(t, gvr, namespace, name) == nil, gvr.Resource + " " + name + " still exists"
	})
}

// setStatus writes an object's status, as the controller of its kind does.
func setStatus(t *testing.T, gvr schema.GroupVersionResource, namespace, name string, status func(u *unstructured.Unstructured) map[string]any) {
	t.Helper()
	testkit.Update(t, gvr, namespace, name, func(u *unstructured.Unstructured) { u.Object["status"] = status(u) }, "status")
}

func documents(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	list := must.Get(controlplane.Documents(string(read(t, path)))).In(t)
	return list
}

func marshal(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	text := must.Get(u.MarshalJSON()).In(t)
	return string(text)
}
