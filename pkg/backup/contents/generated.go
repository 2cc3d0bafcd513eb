package contents

import (
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// Jobs is a kind to which the API server adds values of this cluster.
	Jobs = schema.GroupKind{Group: "batch", Kind: "Job"}
	// Pods is another one.
	Pods = schema.GroupKind{Kind: "Pod"}
)

// each is every item of a list in a path.
const each = "*"

// generatedFields of built-in kinds get their values from the API server or a controller, for one object at one moment.
// They are not restored, unless someone else owns them: whoever writes a clusterIP into a template wants it.
var generatedFields = map[schema.GroupKind][][]any{
	Jobs: {
		{"spec", "selector"},
		{"spec", "template", "metadata", "labels", batchv1.ControllerUidLabel},
		{"spec", "template", "metadata", "labels", "controller-uid"},
	},
	Pods: {{"spec", "nodeName"}, {"spec", "ephemeralContainers"}},
	{Kind: "Service"}: {
		{"spec", "clusterIP"},
		{"spec", "clusterIPs"},
		{"spec", "ipFamilies"},
		{"spec", "ipFamilyPolicy"},
		{"spec", "healthCheckNodePort"},
		{"spec", "ports", each, "nodePort"},
	},
	{Kind: "PersistentVolumeClaim"}: {
		{"spec", "volumeName"},
		{"metadata", "annotations", "pv.kubernetes.io/bind-completed"},
		{"metadata", "annotations", "pv.kubernetes.io/bound-by-controller"},
		{"metadata", "annotations", "volume.kubernetes.io/selected-node"},
		{"metadata", "annotations", "volume.kubernetes.io/storage-provisioner"},
		{"metadata", "annotations", "volume.beta.kubernetes.io/storage-provisioner"},
	},
	{Kind: "PersistentVolume"}: {
		{"spec", "claimRef", "uid"},
		{"spec", "claimRef", "resourceVersion"},
	},
	{Kind: "ServiceAccount"}: {{"secrets"}},
	{Group: "apps", Kind: "Deployment"}: {
		{"metadata", "annotations", "deployment.kubernetes.io/revision"},
	},
}

// tokenFields are those of a Secret whose type is that of a ServiceAccount's token, which is deleted if they name
// another ServiceAccount.
var tokenFields = [][]any{
	{"metadata", "annotations", corev1.ServiceAccountUIDKey},
	{"data", "token"},
	{"data", "ca.crt"},
	{"data", "namespace"},
}

// Generated lists the fields of an archived object that are not restored.
func Generated(u *unstructured.Unstructured) (paths [][]any) {
	patterns := generatedFields[u.GroupVersionKind().GroupKind()]
	if u.GetAPIVersion() == "v1" && u.GetKind() == "Secret" &&
		u.Object["type"] == string(corev1.SecretTypeServiceAccountToken) {
		patterns = tokenFields
	}
	for _, pattern := range patterns {
		for _, path := range expand(u.Object, pattern) {
			if !owned(u, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// expand returns a path for each list item that a pattern names.
func expand(v any, pattern []any) [][]any {
	i := slices.Index(pattern, any(each))
	if i < 0 {
		return [][]any{pattern}
	}
	var paths [][]any
	list, _ := at(v, pattern[:i]).([]any)
	for n := range list {
		path := slices.Clone(pattern)
		path[i] = n
		paths = append(paths, path)
	}
	return paths
}

// at is the value at a path, or nil.
func at(v any, path []any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// owned reports whether someone owns a field: neither a controller of Kubernetes nor a subresource counts.
func owned(u *unstructured.Unstructured, path []any) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		if e.FieldsV1 == nil || e.Subresource != "" || e.Manager == "kube-controller-manager" ||
			e.Manager == "kube-scheduler" {
			return false
		}
		fields := map[string]any{}
		return json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil && has(fields, u.Object, path)
	})
}

// has follows a path through fieldsV1 and through the object, whose items say which keys are theirs.
func has(fields map[string]any, v any, path []any) bool {
	if len(path) == 0 {
		return true
	}
	next := at(v, path[:1])
	for key, value := range fields {
		below, _ := value.(map[string]any)
		if (key == keyOf(path[0]) || isItem(key, next)) && has(below, next, path[1:]) {
			return true
		}
	}
	return false
}

func keyOf(step any) string {
	name, _ := step.(string)
	return "f:" + name
}

// isItem reports whether a key such as k:{"port":80} names an item.
func isItem(key string, item any) bool {
	object, ok := item.(map[string]any)
	if !ok || len(key) < 2 || key[:2] != "k:" {
		return false
	}
	want := &unstructured.Unstructured{}
	if want.UnmarshalJSON([]byte(`{"apiVersion": "v1", "kind": "Key", "key": `+key[2:]+`}`)) != nil {
		return false
	}
	fields, _ := want.Object["key"].(map[string]any)
	for name, value := range fields {
		if object[name] != value {
			return false
		}
	}
	return true
}

// Without removes fields, and maps that are empty without them, such as labels: the API server stores no empty ones.
func Without(u *unstructured.Unstructured, paths [][]any) {
	for _, path := range paths {
		last := len(path) - 1
		m, ok := at(u.Object, path[:last]).(map[string]any)
		key := path[last].(string)
		if _, has := m[key]; !ok || !has {
			continue
		}
		if delete(m, key); len(m) > 0 || last == 0 {
			continue
		}
		if above, ok := at(u.Object, path[:last-1]).(map[string]any); ok {
			delete(above, path[last-1].(string))
		}
	}
}

// Carry copies fields that an object in the cluster has: the API server refuses an update that lacks them.
func Carry(u, live *unstructured.Unstructured, paths [][]any) {
	for _, path := range paths {
		last := len(path) - 1
		value := at(live.Object, path)
		if value == nil {
			continue
		}
		if above, ok := at(u.Object, path[:max(last-1, 0)]).(map[string]any); ok && last > 0 &&
			above[path[last-1].(string)] == nil {
			above[path[last-1].(string)] = map[string]any{}
		}
		if m, ok := at(u.Object, path[:last]).(map[string]any); ok {
			m[path[last].(string)] = value
		}
	}
}
