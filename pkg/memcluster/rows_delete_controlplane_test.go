//go:build controlplane

package memcluster_test

// deleteRows returns the rows about DELETE and the garbage collector.
func deleteRows() []row {
	const policy = `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"`
	x := cm + "/x"
	child := func(name, owner, more string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"` + owner + `"` + more + `}]}}`
	}
	return []row{
		{
			"delete",
			"the object is gone at once",
			[]step{{method: "POST", path: cm, body: configMapA}, {method: "DELETE", path: x}, {method: "GET", path: x}, {method: "DELETE", path: x}},
		},
		{
			"delete of a custom resource",
			"the same",
			[]step{
				{method: "POST", path: wd, body: widget},
				{method: "DELETE", path: wd + "/x", body: policy + `Background"}`},
				{method: "DELETE", path: wd + "/x"},
			},
		},
		{
			"delete with preconditions",
			"409 for another uid or version",
			[]step{
				{method: "POST", path: cm, body: configMapA},
				{
					method: "DELETE",
					path:   x,
					body:   `{"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}}`,
				},
				{method: "DELETE", path: x, body: `{"preconditions":{"resourceVersion":"1"}}`},
				{method: "DELETE", path: x, body: `{"preconditions":{"uid":"${1.metadata.uid}","resourceVersion":"${1.metadata.resourceVersion}"}}`},
			},
		},
		{
			"delete with options that are not valid",
			"422",
			[]step{
				{method: "POST", path: cm, body: configMapA},
				{method: "DELETE", path: x, body: policy + `Sideways"}`},
				{
					method: "DELETE",
					path:   x,
					body:   `{"propagationPolicy":"Orphan","orphanDependents":true}`,
				},
				{method: "DELETE", path: x, body: `{"dryRun":["Some"]}`},
				{method: "DELETE", path: x + "?propagationPolicy=Sideways"},
			},
		},
		{
			"delete with a finalizer",
			"the object is terminating until it is removed",
			[]step{
				{method: "POST", path: cm, body: held},
				{method: "DELETE", path: x},
				{method: "DELETE", path: x},
				{
					method: "MERGE",
					path:   x + asA,
					body:   `{"data":{"k":"1"}}`,
				},
				{method: "JSON", path: x + asA, body: `[{"op":"remove","path":"/metadata/finalizers/0"}]`},
				{method: "GET", path: x},
			},
		},
		{
			"delete of a custom resource with a finalizer",
			"its generation counts the deletion once",
			[]step{{method: "POST", path: wd, body: heldWidget}, {method: "DELETE", path: wd + "/x"}, {method: "DELETE", path: wd + "/x"},
				{method: "MERGE", path: wd + "/x", body: `{"metadata":{"finalizers":null}}`}, {method: "GET", path: wd + "/x"}},
		},
		{
			"dry-run delete",
			"answered and not done",
			[]step{
				{method: "POST", path: cm, body: configMapA},
				{method: "DELETE", path: x, body: `{"dryRun":["All"]}`},
				{method: "GET", path: x},
				{
					method: "MERGE",
					path:   x,
					body:   `{"metadata":{"finalizers":["example.com/hold"]}}`,
				},
				{method: "DELETE", path: x + "?dryRun=All"},
				{method: "GET", path: x},
			},
		},
		{
			"dry-run removal of the last finalizer",
			"answered and not done",
			[]step{
				{method: "POST", path: cm, body: held},
				{method: "DELETE", path: x},
				{method: "MERGE", path: x + "?dryRun=All", body: `{"metadata":{"finalizers":null}}`},
				{method: "GET", path: x},
			},
		},
		{
			"delete in the background",
			"dependents are collected",
			[]step{{method: "POST", path: cm, body: configMapA}, {method: "POST", path: cm, body: child("c", "${1.metadata.uid}", "")},
				{method: "DELETE", path: x, body: policy + `Background"}`}, {method: "GET", path: cm + "/c", collect: true}},
		},
		{
			"delete in the foreground",
			"a finalizer holds the owner until its dependents are gone",
			[]step{
				{method: "POST", path: cm, body: held},
				{
					method: "POST",
					path:   cm,
					body:   child("c", "${1.metadata.uid}", `,"blockOwnerDeletion":true`),
				},
				{method: "DELETE", path: x, body: policy + `Foreground"}`},
				{method: "GET", path: cm + "/c", collect: true},
				{method: "GET", path: x, collect: true},
			},
		},
		{
			"delete that leaves orphans",
			"dependents lose their owner",
			[]step{
				{method: "POST", path: cm, body: held},
				{method: "POST", path: cm, body: child("c", "${1.metadata.uid}", "")},
				{
					method: "DELETE",
					path:   x,
					body:   policy + `Orphan"}`,
				},
				{method: "GET", path: x, collect: true},
				{method: "GET", path: cm + "/c", collect: true},
			},
		},
		{"finalizers of the garbage collector", "say what becomes of dependents where the deletion does not; it overrules them", []step{
			{method: "POST", path: cm, body: configMapWith(`,"finalizers":["foregroundDeletion","example.com/hold"]`, `{}`)},
			{method: "DELETE", path: x + "?dryRun=All"},
			{method: "DELETE", path: x, body: policy + `Orphan","dryRun":["All"]}`},
			{method: "DELETE", path: x, body: policy + `Background"}`},
			{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","finalizers":["example.com/hold","orphan"]}}`},
			{method: "DELETE", path: wd + "/x?dryRun=All"},
			{method: "DELETE", path: wd + "/x", body: policy + `Foreground","dryRun":["All"]}`}}},
		{
			"two owners",
			"the one that is gone is taken off",
			[]step{
				{method: "POST", path: cm, body: configMapA},
				{method: "POST", path: cm, body: `{"metadata":{"name":"y"}}`},
				{
					method: "POST",
					path:   cm,
					body:   `{"metadata":{"name":"c","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"${1.metadata.uid}"},{"apiVersion":"v1","kind":"ConfigMap","name":"y","uid":"${2.metadata.uid}"}]}}`,
				},
				{method: "DELETE", path: x},
				{method: "GET", path: cm + "/c", collect: true},
			},
		},
		{
			"owners of another uid",
			"are gone",
			[]step{
				{method: "POST", path: wd, body: widget},
				{
					method: "POST",
					path:   cm,
					body:   `{"metadata":{"name":"c","ownerReferences":[{"apiVersion":"mem.example.com/v1","kind":"Widget","name":"x","uid":"11111111-2222-3333-4444-555555555555"}]}}`,
				},
				{method: "GET", path: cm + "/c", collect: true},
			},
		},
		{
			"chains",
			"dependents of dependents go, too",
			[]step{
				{method: "POST", path: wd, body: widget},
				{
					method: "POST",
					path:   cm,
					body:   `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"mem.example.com/v1","kind":"Widget","name":"x","uid":"${1.metadata.uid}"}]}}`,
				},
				{
					method: "POST",
					path:   cm,
					body:   child("c", "${2.metadata.uid}", ""),
				},
				{method: "DELETE", path: wd + "/x", body: policy + `Foreground"}`},
				{method: "GET", path: wd + "/x", collect: true},
				{method: "GET", path: cm + "/c", collect: true},
			},
		},
		{
			"namespaces",
			"a terminating one takes nothing new, and goes with what is in it",
			[]step{
				{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"NS-b"}}`},
				{method: "POST", path: "/api/v1/namespaces/NS-b/configmaps", body: held},
				{method: "DELETE", path: "/api/v1/namespaces/NS-b"},
				{method: "POST", path: "/api/v1/namespaces/NS-b/configmaps", body: `{"metadata":{"name":"y"}}`},
				{method: "APPLY", path: "/apis/mem.example.com/v1/namespaces/NS-b/widgets/x" + asA, body: widget},
				{
					method:  "GET",
					path:    "/api/v1/namespaces/NS-b/configmaps/x",
					collect: true,
				},
				{method: "MERGE", path: "/api/v1/namespaces/NS-b/configmaps/x", body: `{"metadata":{"finalizers":null}}`},
				{method: "GET", path: "/api/v1/namespaces/NS-b", collect: true},
			},
		},
		{
			"namespaces by apply",
			"they get their label and phase",
			[]step{
				{
					method: "APPLY",
					path:   "/api/v1/namespaces/NS-c" + asA,
					body:   `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"NS-c","labels":{"a":"b"}}}`,
				},
				{
					method: "APPLY",
					path:   "/api/v1/namespaces/NS-c" + asA,
					body:   `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"NS-c","labels":{"c":"d"}}}`,
				},
			},
		},
	}
}
