//go:build controlplane

package apply

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
)

// podWorkload is a kind with a selector and a pod template; SPEC is the rest of its spec.
const podWorkload = `{apiVersion: apps/v1, kind: KIND, metadata: {name: web}, spec: {SPEC, selector: {matchLabels: {app: LABEL}}, template: {metadata: {labels: {app: LABEL}}, spec: {containers: [{name: a, image: a}]}}}}`

func workloadOf(kind, spec, label string) string {
	return strings.NewReplacer("KIND", kind, "SPEC", spec, "LABEL", label).Replace(podWorkload)
}

// immutable is a change that the API server accepts only in a new object. NAME is replaced for cluster-scoped kinds.
type immutable struct {
	reason, group, version, resource string
	original, changed                string
	fields                           string // the result of InvalidFields
}

// immutables are changes that every supported version of the API server accepts only in a new object.
var immutables = []immutable{
	{"a StatefulSet's service", "apps", "v1", "statefulsets", workloadOf("StatefulSet", "serviceName: a", "web"),
		workloadOf("StatefulSet", "serviceName: b", "web"), "spec"},
	{"a StatefulSet's selector", "apps", "v1", "statefulsets", workloadOf("StatefulSet", "serviceName: a", "web"),
		workloadOf("StatefulSet", "serviceName: a", "other"), "spec"},
	{"a Deployment's selector", "apps", "v1", "deployments", workloadOf("Deployment", "replicas: 1", "web"),
		workloadOf("Deployment", "replicas: 1", "other"), "spec.selector"},
	{"a DaemonSet's selector", "apps", "v1", "daemonsets", workloadOf("DaemonSet", "minReadySeconds: 1", "web"),
		workloadOf("DaemonSet", "minReadySeconds: 1", "other"), "spec.selector"},
	{"a ReplicaSet's selector", "apps", "v1", "replicasets", workloadOf("ReplicaSet", "replicas: 1", "web"),
		workloadOf("ReplicaSet", "replicas: 1", "other"), "spec.selector"},
	{"a Job's template", "batch", "v1", "jobs", jobOf("completions: 1", "a"), jobOf("completions: 1", "b"), "spec.template"},
	{"a Job's completions", "batch", "v1", "jobs", jobOf("completions: 1", "a"), jobOf("completions: 2", "a"), "spec.completions"},
	{"a Pod's environment", "", "v1", "pods", podOf("Never", "1"), podOf("Never", "2"), "spec"},
	{"a Pod's restart policy", "", "v1", "pods", podOf("Never", "1"), podOf("Always", "1"), "spec"},
	{"a Service's address", "", "v1", "services", serviceOf("None"), serviceOf("10.0.0.78"), "spec.ipFamilies[1] spec.ipFamilyPolicy"},
	{"a claim's storage class", "", "v1", "persistentvolumeclaims", claimOf("a", "1Gi"), claimOf("b", "1Gi"), "spec"},
	{"a claim that shrinks", "", "v1", "persistentvolumeclaims", claimOf("a", "2Gi"), claimOf("a", "1Gi"), "spec"},
	{"a Secret that is immutable", "", "v1", "secrets",
		`{apiVersion: v1, kind: Secret, metadata: {name: web}, immutable: true, data: {a: YQ==}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: web}, immutable: true, data: {a: Yg==}}`, "data"},
	{"a Secret's type", "", "v1", "secrets", `{apiVersion: v1, kind: Secret, metadata: {name: web}, type: example.com/a}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: web}, type: example.com/b}`, "type"},
	{"a ConfigMap that is immutable", "", "v1", "configmaps",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, immutable: true, data: {a: a}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, immutable: true, data: {a: b}}`, "data"},
	{"a ConfigMap that is to be mutable again", "", "v1", "configmaps",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, immutable: true}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, immutable: false}`, "immutable"},
	{"a RoleBinding's role", "rbac.authorization.k8s.io", "v1", "rolebindings", bindingOf("RoleBinding", "web", "view"),
		bindingOf("RoleBinding", "web", "edit"), "roleRef"},
	{"a ClusterRoleBinding's role", "rbac.authorization.k8s.io", "v1", "clusterrolebindings", bindingOf("ClusterRoleBinding", "NAME", "view"),
		bindingOf("ClusterRoleBinding", "NAME", "edit"), "roleRef"},
	{"a StorageClass's parameters", "storage.k8s.io", "v1", "storageclasses", storageOf("a", "Delete"), storageOf("b", "Delete"),
		"parameters"},
	{"a StorageClass's reclaim policy", "storage.k8s.io", "v1", "storageclasses", storageOf("a", "Delete"), storageOf("a", "Retain"),
		"reclaimPolicy"},
	{"a volume's source, under a name that is none", "", "v1", "persistentvolumes", volumeOf("a"), volumeOf("b"),
		"spec.persistentvolumesource"},
	{"an IngressClass's controller", "networking.k8s.io", "v1", "ingressclasses", clusterOf("networking.k8s.io/v1", "IngressClass",
		"spec: {controller: example.com/a}"),
		clusterOf("networking.k8s.io/v1", "IngressClass", "spec: {controller: example.com/b}"), "spec.controller"},
	{"a CSIDriver, under a name that is none", "storage.k8s.io", "v1", "csidrivers", clusterOf("storage.k8s.io/v1", "CSIDriver",
		"spec: {attachRequired: true}"),
		clusterOf("storage.k8s.io/v1", "CSIDriver", "spec: {attachRequired: false}"), "spec.attachedRequired"},
	{"a PriorityClass's value", "scheduling.k8s.io", "v1", "priorityclasses", clusterOf("scheduling.k8s.io/v1", "PriorityClass", "value: 1"),
		clusterOf("scheduling.k8s.io/v1", "PriorityClass", "value: 2"), "value"},
	{"a RuntimeClass's handler", "node.k8s.io", "v1", "runtimeclasses", clusterOf("node.k8s.io/v1", "RuntimeClass", "handler: a"),
		clusterOf("node.k8s.io/v1", "RuntimeClass", "handler: b"), "handler"},
	{"an EndpointSlice's address type", "discovery.k8s.io", "v1", "endpointslices",
		`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web}, addressType: IPv4, endpoints: []}`,
		`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web}, addressType: IPv6, endpoints: []}`, "addressType"},
	{"a VolumeAttachment", "storage.k8s.io", "v1", "volumeattachments", clusterOf("storage.k8s.io/v1", "VolumeAttachment",
		"spec: {attacher: a.example.com, nodeName: a, source: {persistentVolumeName: a}}"),
		clusterOf("storage.k8s.io/v1", "VolumeAttachment", "spec: {attacher: b.example.com, nodeName: a, source: {persistentVolumeName: a}}"),
		"spec"},
	{"a transition rule of a CRD", "tools.example.com", "v1", "widgets",
		`{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: web}, spec: {sealed: a}}`,
		`{apiVersion: tools.example.com/v1, kind: Widget, metadata: {name: web}, spec: {sealed: b}}`, "spec.sealed"},
}

// immutablesSince134 are those of kinds that exist since Kubernetes 1.34.
var immutablesSince134 = []immutable{
	{"a VolumeAttributesClass", "storage.k8s.io", "v1", "volumeattributesclasses", clusterOf("storage.k8s.io/v1", "VolumeAttributesClass",
		"driverName: a.example.com, parameters: {a: a}"),
		clusterOf("storage.k8s.io/v1", "VolumeAttributesClass", "driverName: a.example.com, parameters: {a: b}"), "parameters"},
	{"a ResourceClaim", "resource.k8s.io", "v1", "resourceclaims",
		`{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: web}, spec: {devices: {requests: [{name: a, exactly: {deviceClassName: a}}]}}}`,
		`{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: web}, spec: {devices: {requests: [{name: b, exactly: {deviceClassName: a}}]}}}`, "spec"},
}

func jobOf(spec, image string) string {
	return `{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {` + spec +
		`, template: {spec: {restartPolicy: Never, containers: [{name: a, image: ` + image + `}]}}}}`
}

func podOf(policy, value string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {restartPolicy: ` + policy +
		`, containers: [{name: a, image: a, env: [{name: A, value: "` + value + `"}]}]}}`
}

func serviceOf(address string) string {
	return `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {clusterIP: ` + address + `, ports: [{port: 80}]}}`
}

func claimOf(class, size string) string {
	return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {storageClassName: ` + class +
		`, accessModes: [ReadWriteOnce], resources: {requests: {storage: ` + size + `}}}}`
}

func bindingOf(kind, name, role string) string {
	return `{apiVersion: rbac.authorization.k8s.io/v1, kind: ` + kind + `, metadata: {name: ` + name +
		`}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + role + `}}`
}

func storageOf(parameter, reclaim string) string {
	return clusterOf("storage.k8s.io/v1", "StorageClass",
		"provisioner: a.example.com, parameters: {a: "+parameter+"}, reclaimPolicy: "+reclaim)
}

func volumeOf(path string) string {
	return clusterOf("v1", "PersistentVolume",
		"spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: a, hostPath: {path: /"+path+"}}")
}

func clusterOf(apiVersion, kind, rest string) string {
	return `{apiVersion: ` + apiVersion + `, kind: ` + kind + `, metadata: {name: NAME}, ` + rest + `}`
}

// minor returns the minor version of the API server.
func minor(t *testing.T) int {
	t.Helper()
	client := must.Get(discovery.NewDiscoveryClientForConfig(testkit.Config(t))).In(t)
	version := must.Get(client.ServerVersion()).In(t)
	n := must.Get(strconv.Atoi(version.Minor)).In(t)
	return n
}

// outermost removes fields below others: older API servers report both if a claim shrinks.
func outermost(fields []string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(field string) bool {
		return slices.ContainsFunc(fields, func(other string) bool { return strings.HasPrefix(field, other+".") })
	})
}

// TestImmutableFields: the API server's validation reports the field of an immutable change.
func TestImmutableFields(t *testing.T) {
	rows := immutables
	if minor(t) >= 34 {
		rows = append(slices.Clone(rows), immutablesSince134...)
	}
	for _, tc := range rows {
		t.Run(tc.reason, func(t *testing.T) {
			f := setupFor(t, testkit.Config(t))
			tg := f.target(schema.GroupVersionResource{Group: tc.group, Version: tc.version, Resource: tc.resource}, "web")
			if strings.Contains(tc.original, "NAME") {
				tg.Name, tg.Namespace = f.ns, ""
			}
			of := func(text string) map[string]any { return doc(t, strings.ReplaceAll(text, "NAME", tg.Name)) }
			live, err := f.c.Create(t.Context(), tg, of(tc.original))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = f.c.Delete(t.Context(), tg, live.GetUID(), metav1.DeletePropagationBackground) }()
			_, err = f.c.Apply(t.Context(), tg, live.GetUID(), of(tc.changed))
			expectError(t, err, nil, ReasonRejected)
			if got := strings.Join(outermost(InvalidFields(err)), " "); got != tc.fields {
				t.Errorf("the fields are %q, want %q, of %v", got, tc.fields, err)
			}
			if err := f.c.Accepts(t.Context(), tg, of(tc.changed)); err != nil {
				t.Errorf("a new object could have it, but the probe says %v", err)
			}
			if err := f.c.AcceptsApply(t.Context(), tg, live.GetUID(), of(tc.original)); err != nil {
				t.Errorf("an apply that changes nothing is refused: %v", err)
			}
			if err := f.c.AcceptsApply(t.Context(), tg, live.GetUID(), of(tc.changed)); InvalidFields(err) == nil {
				t.Errorf("a dry run of the change gives %v", err)
			}
		})
	}
}

// TestDenialsNameNoField: a refusal of admission never counts as validation of a field, whatever its response is.
func TestDenialsNameNoField(t *testing.T) {
	const claims = `'StatefulSet.apps "web" is invalid: spec: Forbidden: updates to statefulset spec for fields other than x are forbidden'`
	forged := func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid,
			Message: `StatefulSet.apps "web" is invalid: spec: Forbidden: no`,
			Details: &metav1.StatusDetails{Group: "apps", Kind: "StatefulSet", Name: "web", Causes: []metav1.StatusCause{
				{Type: metav1.CauseTypeForbidden, Field: "spec", Message: "Forbidden: updates to statefulset spec are forbidden"}}},
		}}
	}
	policy := func(spec string) func(t *testing.T, ns string) {
		return func(t *testing.T, ns string) {
			testkit.Policy(t, ns, "Validating", "UPDATE", "apps", "statefulsets", spec)
		}
	}
	cases := []struct {
		reason string
		deny   func(t *testing.T, ns string)
		code   int
		want   string
	}{
		{"a policy", policy("  validations: [{expression: 'false', message: frozen}]"), 422, ReasonDenied},
		{"a policy that calls it invalid", policy("  validations: [{expression: 'false', message: frozen, reason: Invalid}]"), 422,
			ReasonDenied},
		{"a policy that calls it forbidden", policy("  validations: [{expression: 'false', message: frozen, reason: Forbidden}]"), 403,
			ReasonDenied},
		{"a policy that writes as the API server does", policy("  validations: [{expression: 'false', messageExpression: " +
			fmt.Sprintf("%q", claims) + "}]"), 422, ReasonDenied},
		{"a policy that fails", policy("  validations: [{expression: 'object.spec.nope == 1'}]"), 422, ReasonDenied},
		{"a webhook that answers with causes", func(t *testing.T, ns string) {
			testkit.Webhook(t, ns, "Validating", "UPDATE", "statefulsets",
				forged)
		}, 422, ReasonRejected},
		{"a mutating webhook that answers with causes", func(t *testing.T, ns string) {
			testkit.Webhook(t, ns, "Mutating", "UPDATE",
				"statefulsets", forged)
		}, 422, ReasonRejected},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			f := setupFor(t, testkit.Config(t))
			tg := f.target(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, "web")
			live := f.create(tg, workloadOf("StatefulSet", "replicas: 1", "web"))
			tc.deny(t, f.ns)
			err := f.denied(tg, live, workloadOf("StatefulSet", "replicas: 2", "web"))
			if code(err) != tc.code {
				t.Errorf("the answer is %d: %v", code(err), err)
			}
			expectError(t, err, nil, tc.want)
			if fields := InvalidFields(err); fields != nil {
				t.Errorf("it is taken for the validation of %v", fields)
			}
		})
	}
}

// denied waits until admission refuses an apply, and returns the error.
func (f *fixture) denied(tg Target, live *unstructured.Unstructured, yaml string) error {
	f.Helper()
	var err error
	testkit.Eventually(f.T, eventually, func() (bool, string) {
		err = f.c.AcceptsApply(f.Context(), tg, live.GetUID(), doc(f.T, yaml))
		return err != nil, "nothing refuses it yet"
	})
	return err
}
