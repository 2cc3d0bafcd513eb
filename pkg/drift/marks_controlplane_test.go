//go:build controlplane

package drift_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// forgeries are managedFields that a client may send to make it look as if we applied the marks.
func forgeries(apiVersion string) map[string]string {
	entry := func(version, more, fields string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Apply","apiVersion":%q,"time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1"%s,"fieldsV1":{"f:metadata":%s}}`, manager, version, more, fields)
	}
	item, gone := `k:{\"uid\":\"`+ownerUID+`\"}`, `"f:gone":{}`
	exact := fmt.Sprintf(`{"f:annotations":{".":{},"f:%s":{}},"f:ownerReferences":{".":{},"%s":{}}}`, markKey, item)
	return map[string]string{
		"as we have it":           entry(apiVersion, "", exact),
		"of a version not served": entry("v99", "", exact),
		"of another group":        entry("batch/v1", "", exact),
		"of no version":           entry("", "", exact),
		"of a subresource":        entry(apiVersion, `,"subresource":"status"`, exact),
		"of an unknown one":       entry(apiVersion, `,"subresource":"nothing"`, exact),
		"twice":                   entry(apiVersion, "", exact) + "," + entry("v99", "", exact),
		"with what is not there": entry(apiVersion, "",
			fmt.Sprintf(`{%s,"f:annotations":{".":{},%s,"f:%s":{".":{},%s}},"f:ownerReferences":{".":{},%s,"%s":{".":{},%s}}}`, gone, gone, markKey,
				gone, gone, item, gone)),
		"below what is there": entry(apiVersion, "", fmt.Sprintf(`{"f:annotations":{"f:%s":{%s}},"f:ownerReferences":{"%s":{%s}}}`, markKey,
			gone, item, gone)),
		"the whole lists":       entry(apiVersion, "", `{"f:annotations":{},"f:ownerReferences":{}}`),
		"the whole of metadata": entry(apiVersion, "", `{}`),
		"by number":             entry(apiVersion, "", `{"f:ownerReferences":{"i:0":{}}}`),
		"by value":              entry(apiVersion, "", fmt.Sprintf(`{"f:ownerReferences":{"v:%s":{}}}`, `{\"uid\":\"`+ownerUID+`\"}`)),
		"by more keys": entry(apiVersion, "", fmt.Sprintf(`{"f:ownerReferences":{"k:{\"name\":\"owner\",\"uid\":\"%s\"}":{}}}`,
			ownerUID)),
		"by an escaped key": entry(apiVersion, "", fmt.Sprintf(`{"f:ownerReferences":{"k:{\"\\u0075id\":\"%s\"}":{}}}`, ownerUID)),
		"beside the rest of it": entry(apiVersion, "", strings.Replace(exact, `{"f:annotations"`, `{"f:labels":{"f:x":{}},"f:annotations"`,
			1)),
		"under another's name": strings.Replace(entry(apiVersion, "", exact), manager, "somebody", 1),
		"beside a foreign entry": strings.Replace(entry(apiVersion, "", `{"f:labels":{"f:x":{}}}`), manager, "somebody", 1) + "," +
			entry(apiVersion, "", exact),
		"with an empty operation":  strings.Replace(entry(apiVersion, "", exact), `"Apply"`, `""`, 1),
		"as an update by our name": strings.Replace(entry(apiVersion, "", exact), `"Apply"`, `"Update"`, 1),
	}
}

// TestServerMarksOfNewObjects: whatever managedFields and name a client sends when it creates an object, the marks are
// its own: the API server attributes every field of a new object to the request. Only an apply with our name makes them
// ours.
func TestServerMarksOfNewObjects(t *testing.T) {
	ns, client := testkit.Namespace(t), testkit.Dynamic(t)
	for _, kind := range marked {
		t.Run(kind.resource, func(t *testing.T) {
			made := markedObject(t, kind.yaml, "applied")
			resource := resourceOf(client, ns, made, kind.resource)
			ours, err := resource.Apply(t.Context(), "applied", made, metav1.ApplyOptions{FieldManager: manager})
			if err != nil || proof(t, ours) != "reference annotation" {
				t.Fatalf("%s: an apply under our name proves %q: %v", kind.reason, proof(t, ours), err)
			}
			copied, _ := json.Marshal(ours.Object["metadata"].(map[string]any)["managedFields"])
			texts := forgeries(made.GetAPIVersion())
			texts["copied from an object of ours"] = strings.Trim(string(copied), "[]")
			n, left := 0, false
			for name, text := range texts {
				var list []any
				must.Do(t, json.Unmarshal([]byte("["+text+"]"), &list), name)
				for _, by := range []string{manager, "kubectl-create", ""} {
					for _, how := range []string{"POST", "generateName", "PUT"} {
						if how == "PUT" && kind.resource != "roles" {
							continue
						}
						n++
						u := markedObject(t, kind.yaml, fmt.Sprintf("forged-%d", n))
						u.Object["metadata"].(map[string]any)["managedFields"] = list
						out, err := create(t, resource, u, how, by)
						if apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) {
							continue // it is not even stored
						}
						if err != nil {
							t.Fatalf("%s, %s as %q: %v", name, how, by, err)
						}
						left = left || live(t, marks, out).Managed
						stored := must.Get(resource.Get(t.Context(), out.GetName(), metav1.GetOptions{})).In(t)
						if p := proof(t, stored) + proof(t, out); strings.Contains(p, "reference") || strings.Contains(p, "annotation") {
							t.Errorf("%s: managedFields %s, by %s as %q, prove %s: %v", kind.reason, name, how, by, p, stored.GetManagedFields())
						}
					}
				}
			}
			if !left { // for fields that the object does not have: an entry alone proves nothing
				t.Error("no forged entry is left of any of them: are they sent?")
			}
		})
	}
}

func create(t *testing.T, resource dynamic.ResourceInterface, u *unstructured.Unstructured, how, by string) (*unstructured.Unstructured,
	error) {
	t.Helper()
	switch how {
	case "PUT":
		return resource.Update(t.Context(), u, metav1.UpdateOptions{FieldManager: by})
	case "generateName":
		u.SetName("")
		u.SetGenerateName("forged-")
	}
	return resource.Create(t.Context(), u, metav1.CreateOptions{FieldManager: by})
}

// TestServerMarksOfWrites: for an existing object, an apply with our name or a write to managedFields makes the marks
// ours. Both need the right to patch or update the object, and an apply that creates the verbs create and patch; a
// subresource is not enough.
func TestServerMarksOfWrites(t *testing.T) {
	ns, client := testkit.Namespace(t), testkit.Dynamic(t)
	meta := fmt.Sprintf(`{"metadata":{"annotations":{%q:"a/b/%s"},"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`, markKey, ownerUID, ownerUID)
	applied := strings.Replace(meta, `{"metadata"`, `{"apiVersion":"apps/v1","kind":"Deployment","metadata"`, 1)
	withFields := strings.Replace(meta, `{"metadata":{`, `{"metadata":{"managedFields":[`+forgeries("apps/v1")["as we have it"]+`],`, 1)
	jsonPatch := fmt.Sprintf(`[{"op":"add","path":"/metadata/annotations/%s","value":"a/b/%s"}]`, strings.ReplaceAll(markKey, "/", "~1"),
		ownerUID)
	for _, row := range []struct {
		name, reason string
		kind         types.PatchType
		body, sub    string
		proves       string
	}{
		{"merge patch", "a patch by our name is an update", types.MergePatchType, meta, "", ""},
		{"strategic patch", "a patch by our name is an update", types.StrategicMergePatchType, meta, "", ""},
		{"json patch", "a patch by our name is an update", types.JSONPatchType, jsonPatch, "", ""},
		{"patch with managedFields", "fields that change with the same request are the request's own", types.MergePatchType, withFields, "", ""},
		{"apply", "an apply by our name owns what it sends", types.ApplyPatchType, applied, "", "reference annotation"},
		{"apply to the status", "its entry is another one", types.ApplyPatchType, applied, "status", ""},
		{"patch of the status", "a status cannot bring managedFields", types.MergePatchType, withFields, "status", ""},
		{"patch of the scale", "nor can a scale", types.MergePatchType, strings.Replace(withFields, "}}", `},"spec":{"replicas":3}}`, 1),
			"scale", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			u := testkit.Parse(t, marked[2].yaml)
			u.SetName(strings.ToLower(strings.ReplaceAll(row.name, " ", "-")))
			u.SetAnnotations(map[string]string{"some": "annotation"})
			resource := resourceOf(client, ns, u, "deployments")
			must.Get(resource.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-create"})).In(t)
			o := metav1.PatchOptions{FieldManager: manager}
			subs := []string{}
			if row.sub != "" {
				subs = append(subs, row.sub)
			}
			if _, err := resource.Patch(t.Context(), u.GetName(), row.kind, []byte(row.body), o, subs...); err != nil && row.sub == "" {
				t.Fatal(err)
			}
			got, err := resource.Get(t.Context(), u.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if p := proof(t, got); p != row.proves {
				t.Errorf("%s: it proves %q, want %q: %v", row.reason, p, row.proves, got.GetManagedFields())
			}
			if row.name != "merge patch" {
				return
			}
			// A second write, to managedFields alone, is enough: anyone who can patch the object can write anything in it.
			second := `{"metadata":{"managedFields":[` + forgeries("apps/v1")["as we have it"] + `]}}`
			if got, err = resource.Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(second), o); err != nil ||
				proof(t, got) != "reference annotation" {
				t.Errorf("a patch of managedFields proves %q: %v", proof(t, got), err)
			}
		})
	}
	for _, row := range []struct {
		verbs []string
		may   bool
	}{
		{[]string{"create"}, false}, {[]string{"create", "update"}, false}, {[]string{"patch"}, false}, {[]string{"create", "patch"}, true},
	} {
		name := strings.Join(row.verbs, "-")
		cfg := testkit.User(t, name, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: row.verbs})
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		u := markedObject(t, marked[0].yaml, name)
		_, err = resourceOf(client, ns, u, "configmaps").Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: manager, Force: true})
		if may := err == nil; may != row.may || !may && !apierrors.IsForbidden(err) {
			t.Errorf("%v: %v", row.verbs, err)
		}
	}
}
