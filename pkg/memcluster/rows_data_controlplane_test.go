//go:build controlplane

package memcluster_test

import "strings"

func secretWith(kind, data string) string {
	return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"type":"` + kind + `","data":` + data + `}`
}

// dataRows returns the rows about the validation of ConfigMaps and Secrets.
func dataRows() []row {
	immutable := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"immutable":true,"data":{"k":"1"},"binaryData":{"b":"AA=="}}`
	const roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles"
	const noRules = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"x"},"rules":[]}`
	large := func(size int) string {
		return `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"` + strings.Repeat("x", size) + `"}}`
	}
	types := []step{}
	for _, secret := range []string{
		secretWith("kubernetes.io/tls", `{"tls.crt":"AA=="}`), secretWith("kubernetes.io/ssh-auth", `{"ssh-privatekey":""}`),
		secretWith("kubernetes.io/basic-auth", `{}`), secretWith("kubernetes.io/dockerconfigjson", `{}`),
		secretWith("kubernetes.io/dockerconfigjson", `{".dockerconfigjson":"AA=="}`), secretWith("kubernetes.io/dockercfg", `{".dockercfg":"AA=="}`),
		secretWith("kubernetes.io/dockercfg", `{".dockercfg":"e30="}`),
	} {
		types = append(types, step{method: "POST", path: secrets, body: secret})
	}
	return []row{
		{"asking for rights", "an administrator may do everything", []step{
			{method: "POST", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
				body: `{"spec":{"resourceAttributes":{"verb":"create","resource":"configmaps","namespace":"NS"}}}`}}},
		{"keys of data", "each key that is not valid has a cause", []step{
			{method: "POST", path: cm, body: configMapWith("", `{"not a key!":"x","..":"y"}`)},
			{method: "POST", path: cm, body: `{"metadata":{"name":"x"},"data":{"a":"x"},"binaryData":{"a":"AA=="}}`},
			{method: "POST", path: secrets, body: secretWith("Opaque", `{"not a key!":"AA=="}`)},
			{method: "APPLY", path: cm + "/x" + asA, body: configMapWith("", `{"k":"1"}`)},
			{method: "APPLY", path: cm + "/x" + asA, body: configMapWith("", `{"not a key!":"x"}`)}}},
		{"an immutable ConfigMap", "its data stays, its metadata may change", []step{
			{method: "POST", path: cm, body: immutable}, {method: "MERGE", path: cm + "/x", body: `{"data":{"k":"2"}}`},
			{method: "MERGE", path: cm + "/x", body: `{"data":{"k":"2"},"binaryData":null,"immutable":false}`},
			{method: "MERGE", path: cm + "/x", body: `{"immutable":null}`},
			{method: "APPLY", path: cm + "/x" + asA + force, body: configMapWith("", `{"k":"2"}`)},
			{method: "MERGE", path: cm + "/x", body: `{"metadata":{"labels":{"a":"1"}}}`}, {method: "DELETE", path: cm + "/x"}}},
		{"an immutable Secret", "its data stays", []step{
			{method: "POST", path: secrets, body: strings.Replace(secretWith("Opaque", `{"k":"AA=="}`), `{"apiVersion"`, `{"immutable":true,"apiVersion"`, 1)},
			{method: "MERGE", path: secrets + "/x", body: `{"stringData":{"k":"2"}}`}, {method: "MERGE", path: secrets + "/x", body: `{"immutable":false}`},
			{method: "MERGE", path: secrets + "/x", body: `{"metadata":{"labels":{"a":"1"}}}`}}},
		{"the type of a Secret", "is immutable", []step{{method: "POST", path: secrets, body: secretWith("Opaque", `{}`)},
			{method: "MERGE", path: secrets + "/x", body: `{"type":"example.com/other"}`},
			{method: "APPLY", path: secrets + "/x" + asA + force, body: secretWith("example.com/other", `{"k":"AA=="}`)}}},
		{"what the type of a Secret requires", "each key that is missing has a cause", types},
		{"data that is too large", "422", []step{
			{method: "POST", path: cm, body: configMapWith("", `{"k":"`+strings.Repeat("x", 1<<20)+`"}`)},
			{method: "POST", path: cm, body: configMapWith("", `{"k":"`+strings.Repeat("x", 1<<20+1)+`"}`)},
			{method: "POST", path: secrets, body: strings.Replace(secretWith("Opaque", `{}`), `"data":{}`, `"stringData":{"k":"`+strings.Repeat("x", 1<<20+1)+`"}`, 1)}}},
		{"a list that is empty", "is stored as null, or not at all", []step{
			{method: "POST", path: roles + "?dryRun=All", body: noRules}, {method: "POST", path: roles, body: noRules},
			{method: "GET", path: roles + "/x"}, {method: "MERGE", path: roles + "/x", body: `{"rules":[{"verbs":["get"],"resourceNames":[],"apiGroups":[""],"resources":["pods"]}]}`},
			{method: "MERGE", path: roles + "/x", body: `{"rules":[]}`}, {method: "MERGE", path: roles + "/x", body: `{"rules":[]}`},
			{method: "APPLY", path: roles + "/x" + asA + force, body: noRules}}},
		{"an object that etcd does not store", "500", []step{{method: "POST", path: gd, body: large(1_700_000)},
			{method: "POST", path: gd, body: large(1 << 17)},
			{method: "DELETE", path: gd + "/NS"}}},
		{"a status that is null where it must not be", "is refused", []step{{method: "POST", path: wd, body: widget},
			{method: "MERGE", path: wd + "/x/status", body: `{"status":{"phase":null}}`},
			{method: "APPLY", path: wd + "/x/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"phase":null}}`},
			{method: "APPLY", path: wd + "/x" + asA, body: widgetWith(`{"color":null}`)}}},
	}
}
