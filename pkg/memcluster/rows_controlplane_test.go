//go:build controlplane

package memcluster_test

import "slices"

const (
	cm      = "/api/v1/namespaces/NS/configmaps"
	secrets = "/api/v1/namespaces/NS/secrets"
	wd      = "/apis/mem.example.com/v1/namespaces/NS/widgets"
	gd      = "/apis/mem.example.com/v1/gadgets"

	asA   = "?fieldManager=a"
	asB   = "?fieldManager=b"
	force = "&force=true"

	configMapA = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"app":"x"}},"data":{"k":"1","l":"2"}}`
	widget     = `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"color":"red"}}`
	held       = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","finalizers":["example.com/hold"]}}`
	heldWidget = `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","finalizers":["example.com/hold"]},"spec":{}}`
)

func widgetWith(spec string) string {
	return `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":` + spec + `}`
}

func configMapWith(metadata, data string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"` + metadata + `},"data":` + data + `}`
}

func conformance() []row {
	return slices.Concat(writeRows(), applyRows(), customRows(), deleteRows(), readRows(), watchRows(),
		operationRows(), definitionRows(), dataRows())
}

// writeRows returns the rows about POST, PUT and patches other than apply.
func writeRows() []row {
	return []row{
		{"create", "metadata is filled in, and the writer owns what was sent", []step{
			{method: "POST", path: cm + asA, body: configMapA}, {method: "GET", path: cm + "/x"}}},
		{"create twice", "the name is taken", []step{{method: "POST", path: cm, body: configMapA}, {method: "POST", path: cm, body: configMapA}}},
		{"create over a terminating object", "the message says that it is going", []step{{method: "POST", path: cm, body: held},
			{method: "DELETE", path: cm + "/x"}, {method: "POST", path: cm, body: configMapA}}},
		{
			"create without a name",
			"422 with a cause",
			[]step{{method: "POST", path: cm, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`},
				{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{}}`}},
		},
		{"create with a bad name", "422 with a cause", []step{{method: "POST", path: cm, body: `{"metadata":{"name":"Bad_Name"}}`},
			{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"Bad_Name"}}`}}},
		{
			"create with bad labels",
			"metadata is validated",
			[]step{{method: "POST", path: cm, body: `{"metadata":{"name":"x","labels":{"d":"e f"},"annotations":{"g h":""},"finalizers":["no"]}}`}},
		},
		{
			"generateName",
			"the server makes the name",
			[]step{{method: "POST", path: cm, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-"}}`},
				{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"generateName":"x-"}}`}},
		},
		{
			"create with a resourceVersion",
			"it is refused",
			[]step{{method: "POST", path: cm, body: `{"metadata":{"name":"x","resourceVersion":"5"}}`}},
		},
		{
			"create with system fields",
			"they are the server's",
			[]step{
				{
					method: "POST",
					path:   cm,
					body:   `{"metadata":{"name":"x","uid":"11111111-2222-3333-4444-555555555555","generation":7,"creationTimestamp":"2020-01-01T00:00:00Z","deletionTimestamp":"2020-01-01T00:00:00Z"}}`,
				},
			},
		},
		{
			"create in another namespace",
			"path and body disagree",
			[]step{{method: "POST", path: cm, body: `{"metadata":{"name":"x","namespace":"elsewhere"}}`}},
		},
		{
			"create in a missing namespace",
			"404 about the namespace",
			[]step{
				{method: "POST", path: "/api/v1/namespaces/NS-missing/configmaps", body: `{"metadata":{"name":"x"}}`},
				{
					method: "APPLY",
					path:   "/api/v1/namespaces/NS-missing/configmaps/x" + asA,
					body:   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
				},
				{method: "POST", path: "/apis/mem.example.com/v1/namespaces/NS-missing/widgets", body: widget},
			},
		},
		{
			"create of another kind",
			"the body is of another kind",
			[]step{{method: "POST", path: cm, body: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`, message: true},
				{method: "POST", path: cm, body: `{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}`, message: true},
				{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Other","metadata":{"name":"x"}}`}},
		},
		{"create with an unknown field", "strict refuses, the default drops it", []step{
			{method: "POST", path: cm + "?fieldValidation=Strict", body: `{"metadata":{"name":"x"},"nope":1,"data":{"a":"1","a":"2"}}`},
			{method: "POST", path: cm, body: `{"metadata":{"name":"x"},"nope":1}`},
			{method: "POST", path: wd + "?fieldValidation=Strict", body: widgetWith(`{"nope":1,"nested":{"must":"x","what":2}}`)},
			{method: "POST", path: wd, body: widgetWith(`{"nope":1}`)}}},
		{"create of what is no object", "400", []step{{method: "POST", path: cm, body: `{"metadata":`, message: true},
			{method: "POST", path: cm, body: `{"metadata":{"name":"x"},"data":{"k":1}}`}}},
		{
			"dry-run create",
			"answered and not stored",
			[]step{{method: "POST", path: cm + "?dryRun=All", body: configMapA}, {method: "GET", path: cm + "/x"}},
		},
		{"options that are not valid", "422 about the options", []step{{method: "POST", path: cm + "?dryRun=Some", body: configMapA},
			{method: "POST", path: cm + "?fieldValidation=Maybe", body: configMapA}, {method: "APPLY", path: cm + "/x", body: configMapA},
			{method: "MERGE", path: cm + "/x?force=true", body: `{}`}}},
		{
			"methods that are not allowed",
			"405",
			[]step{{method: "POST", path: cm + "/x", body: configMapA}, {method: "PUT", path: cm, body: configMapA}},
		},
		{
			"paths that are not served",
			"404",
			[]step{
				{method: "GET", path: "/apis/mem.example.com/v1/namespaces/NS/nothings"},
				{method: "GET", path: "/apis/nothing.example.com/v1/widgets"},
				{method: "GET", path: gd + "/x/status"},
				{method: "GET", path: cm + "/x/status"},
				{method: "GET", path: wd + "/x/nothing"},
			},
		},
		{"media types", "415 for what is not read", []step{{method: "POST", path: cm, body: "x", contentType: "text/plain", message: true},
			{method: "MERGE", path: wd + "/x", body: "{}", contentType: "application/strategic-merge-patch+json", message: true},
			{method: "POST", path: cm, body: "metadata: {name: x}\ndata: {a: '1'}\n", contentType: "application/yaml"}}},

		{"update", "a new resourceVersion; the writer owns what it changed", []step{{method: "POST", path: cm + asA, body: configMapA},
			{method: "PUT", path: cm + "/x" + asB, body: configMapWith(``, `{"k":"1","m":"3"}`)}}},
		{
			"update without a change",
			"the object stays as it is",
			[]step{{method: "POST", path: cm + asA, body: configMapA}, {method: "PUT", path: cm + "/x" + asA, body: configMapA},
				{method: "GET", path: cm + "/x"}},
		},
		{"update of nothing", "404", []step{{method: "PUT", path: cm + "/x", body: configMapA}, {method: "PUT", path: wd + "/x", body: widget}}},
		{
			"update by another name",
			"400",
			[]step{{method: "POST", path: cm, body: configMapA}, {method: "PUT", path: cm + "/y", body: configMapA}},
		},
		{
			"update of an old version",
			"409",
			[]step{
				{method: "POST", path: cm, body: configMapA},
				{method: "PUT", path: cm + "/x", body: configMapWith(`,"resourceVersion":"1"`, `{}`)},
			},
		},
		{"update with a uid", "another uid is a conflict", []step{{method: "POST", path: cm, body: configMapA},
			{method: "PUT", path: cm + "/x", body: configMapWith(`,"uid":"11111111-2222-3333-4444-555555555555"`, `{}`), message: true},
			{method: "PUT", path: cm + "/x", body: configMapWith(`,"uid":"${1.metadata.uid}"`, `{}`)}}},
		{
			"update of a custom resource",
			"it must name the version",
			[]step{
				{method: "POST", path: wd, body: widget},
				{method: "PUT", path: wd + "/x", body: widget},
				{
					method: "PUT",
					path:   wd + "/x",
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","resourceVersion":"${1.metadata.resourceVersion}"},"spec":{"color":"red","size":3}}`,
				},
			},
		},
		{
			"dry-run update",
			"answered and not stored",
			[]step{{method: "POST", path: cm, body: configMapA}, {method: "PUT", path: cm + "/x?dryRun=All", body: configMapWith(``, `{"z":"1"}`)},
				{method: "GET", path: cm + "/x"}},
		},
		{"new finalizers on a terminating object", "422", []step{{method: "POST", path: cm, body: held}, {method: "DELETE", path: cm + "/x"},
			{method: "MERGE", path: cm + "/x", body: `{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}`}}},
		{
			"owner references",
			"duplicates are dropped, two controllers are refused",
			[]step{
				{method: "POST", path: cm, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}}`},
				{
					method: "POST",
					path:   cm + asA,
					body: configMapWith(
						`,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"${1.metadata.uid}","controller":true},{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"${1.metadata.uid}","controller":true}]`,
						`{}`,
					),
				},
				{
					method: "MERGE",
					path:   cm + "/x",
					body:   `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"${1.metadata.uid}","controller":true},{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":"u","controller":true}]}}`,
				},
			},
		},
		{
			"preconditions of a custom resource",
			"as those of a built-in kind",
			[]step{
				{method: "POST", path: wd, body: widget},
				{
					method: "MERGE",
					path:   wd + "/x",
					body:   `{"metadata":{"uid":"11111111-2222-3333-4444-555555555555"}}`,
				},
				{method: "MERGE", path: wd + "/x", body: `{"metadata":{"resourceVersion":"1"}}`},
				{method: "MERGE", path: wd + "/x", body: `{"metadata":{"labels":{"a":"b c"}}}`},
				{
					method: "APPLY",
					path:   wd + "/x" + asA + force,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","uid":"11111111-2222-3333-4444-555555555555"}}`,
				},
			},
		},

		{
			"merge patch",
			"the writer owns what it changed",
			[]step{
				{method: "POST", path: cm + asA, body: configMapA},
				{
					method: "MERGE",
					path:   cm + "/x" + asB,
					body:   `{"data":{"k":"9","l":null,"n":"1"}}`,
				},
				{method: "MERGE", path: cm + "/x" + asB, body: `{"data":{"k":"9"}}`},
			},
		},
		{"merge patch of nothing", "404", []step{{method: "MERGE", path: cm + "/x", body: `{}`}, {method: "JSON", path: wd + "/x", body: `[]`}}},
		{
			"merge patch that is not valid",
			"400 and 422",
			[]step{
				{method: "POST", path: wd, body: widget},
				{method: "MERGE", path: wd + "/x", body: `{"spec":`, message: true},
				{
					method: "MERGE",
					path:   wd + "/x",
					body:   `{"spec":{"size":"big"}}`,
				},
				{method: "MERGE", path: wd + "/x?fieldValidation=Strict", body: `{"spec":{"nope":1}}`, message: true},
				{method: "MERGE", path: wd + "/x", body: `{"spec":{"nope":1}}`},
			},
		},
		{"merge patch with preconditions", "another uid is 422, another version 409", []step{{method: "POST", path: cm, body: configMapA},
			{method: "MERGE", path: cm + "/x", body: `{"metadata":{"uid":"11111111-2222-3333-4444-555555555555"}}`},
			{method: "MERGE", path: cm + "/x", body: `{"metadata":{"resourceVersion":"1"},"data":{"k":"2"}}`},
			{method: "MERGE", path: cm + "/x", body: `{"metadata":{"name":"y"}}`}}},
		{
			"JSON patch",
			"operations, and a test that fails",
			[]step{
				{method: "POST", path: cm + asA, body: configMapA},
				{
					method: "JSON",
					path:   cm + "/x" + asB,
					body:   `[{"op":"test","path":"/data/k","value":"1"},{"op":"add","path":"/data/z","value":"3"},{"op":"remove","path":"/data/l"}]`,
				},
				{method: "JSON", path: cm + "/x" + asB, body: `[{"op":"test","path":"/data/k","value":"2"},{"op":"add","path":"/data/z","value":"4"}]`},
				{
					method: "JSON",
					path:   cm + "/x" + asB,
					body:   `[{"op":"remove","path":"/data/missing"}]`,
				},
				{method: "JSON", path: cm + "/x" + asB, body: `{"op":"remove"}`, message: true},
				{method: "GET", path: cm + "/x"},
			},
		},
		{"managedFields by JSON patch", "an empty entry resets them", []step{{method: "POST", path: cm + asA, body: configMapA},
			{method: "JSON", path: cm + "/x" + asB, body: `[{"op":"add","path":"/metadata/managedFields","value":[{}]}]`},
			{method: "APPLY", path: cm + "/x" + asB, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"k":"1"}}`},
			{method: "MERGE", path: cm + "/x" + asB, body: `{"data":{"y":"1"}}`}}},
		{"system fields in a patch", "generation and timestamps stay", []step{{method: "POST", path: wd, body: widget},
			{method: "MERGE", path: wd + "/x", body: `{"metadata":{"generation":9,"creationTimestamp":"2020-01-01T00:00:00Z"}}`},
			{method: "MERGE", path: wd + "/x", body: `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"}}`}}},
		{
			"the manager without a fieldManager",
			"it is the user agent's first part",
			[]step{{method: "POST", path: cm, body: configMapA}, {method: "MERGE", path: cm + "/x", body: `{"data":{"k":"2"}}`}},
		},
		{
			"Secrets",
			"stringData becomes data, and the type is Opaque",
			[]step{
				{method: "POST", path: secrets + asA, body: `{"metadata":{"name":"x"},"stringData":{"a":"b"}}`},
				{
					method: "APPLY",
					path:   secrets + "/y" + asA,
					body:   `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"y"},"stringData":{"a":"b"}}`,
				},
				{
					method: "APPLY",
					path:   secrets + "/y" + asA,
					body:   `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"y"},"stringData":{"c":"d"}}`,
				},
			},
		},
		{
			"normal forms of built-in kinds",
			"quantities are made short, empty values go",
			[]step{
				{
					method: "APPLY",
					path:   "/api/v1/namespaces/NS/resourcequotas/x" + asA,
					body:   `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"x"},"spec":{"hard":{"cpu":"1000m","memory":"0.5Gi"},"scopes":[]}}`,
				},
				{
					method: "APPLY",
					path:   "/api/v1/namespaces/NS/resourcequotas/x" + asA,
					body:   `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"x"},"spec":{"hard":{"cpu":"1"}}}`,
				},
				{
					method:  "APPLY",
					path:    "/api/v1/namespaces/NS/resourcequotas/x" + asA,
					body:    `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"x"},"spec":{"hard":{"cpu":"nonsense"}}}`,
					message: true,
				},
			},
		},
	}
}
