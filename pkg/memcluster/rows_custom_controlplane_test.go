//go:build controlplane

package memcluster_test

// customRows returns the rows about custom kinds: defaults, pruning, validation, rules, status, generation, versions.
func customRows() []row {
	x := wd + "/x"
	return []row{
		{
			"defaults",
			"of fields, of items, and of null",
			[]step{
				{method: "POST", path: wd, body: widgetWith(`{"nested":{"must":"a"},"ports":[{"name":"a"}],"size":null,"maybe":null,"color":null}`)},
				{method: "MERGE", path: x, body: `{"spec":{"size":null,"nested":null}}`},
			},
		},
		{
			"no spec",
			"nothing is made where the parent is missing",
			[]step{{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"}}`}},
		},
		{
			"validation",
			"each rule has its cause",
			[]step{
				{method: "POST", path: wd, body: widgetWith(`{"size":101,"color":"blue","name":"TOO-LONG-NAME","nested":{},"port":true,"ratio":"x"}`)},
				{
					method: "POST",
					path:   wd,
					body:   widgetWith(`{"name":"TOOLONGNAME"}`),
				},
				{method: "POST", path: wd, body: widgetWith(`{"name":"ABC","size":-1}`)},
				{method: "POST", path: wd, body: widgetWith(`[]`)},
				{method: "POST", path: wd, body: widgetWith(`{"size":1.5}`)},
			},
		},
		{
			"apply of what is not valid by its schema",
			"422",
			[]step{{method: "APPLY", path: x + asA, body: widgetWith(`{"size":101,"color":"blue"}`)},
				{method: "APPLY", path: x + asA + "&dryRun=All", body: widgetWith(`{"size":101}`)}},
		},
		{
			"lists that are not valid",
			"duplicates in sets and keyed lists",
			[]step{{method: "POST", path: wd, body: widgetWith(`{"tags":["a","a"],"ports":[{"name":"a"},{"name":"a"}]}`)}},
		},
		{
			"rules",
			"with a field, a reason, and transitions",
			[]step{
				{method: "POST", path: wd, body: widgetWith(`{"size":1,"min":2}`)},
				{method: "POST", path: wd, body: widgetWith(`{"color":"red"}`)},
				{
					method: "MERGE",
					path:   x,
					body:   `{"spec":{"color":"green"}}`,
				},
				{method: "MERGE", path: x, body: `{"spec":{"color":null}}`},
				{method: "MERGE", path: x, body: `{"spec":{"min":1}}`},
				{method: "APPLY", path: x + asA + force, body: widgetWith(`{"color":"green"}`)},
			},
		},
		{
			"generation",
			"counts changes of what is neither metadata nor status",
			[]step{
				{method: "POST", path: wd, body: widget},
				{method: "MERGE", path: x, body: `{"metadata":{"labels":{"a":"1"}}}`},
				{
					method: "MERGE",
					path:   x,
					body:   `{"spec":{"size":4}}`,
				},
				{method: "MERGE", path: x + "/status", body: `{"status":{"count":1}}`},
				{method: "MERGE", path: x, body: `{"spec":{"size":4}}`},
			},
		},
		{
			"status on the main resource",
			"is ignored",
			[]step{
				{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"count":1}}`},
				{
					method: "MERGE",
					path:   x + asA,
					body:   `{"status":{"count":1}}`,
				},
				{
					method: "APPLY",
					path:   x + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"size":1},"status":{"count":2}}`,
				},
			},
		},
		{
			"the status subresource",
			"takes the status alone",
			[]step{
				{method: "POST", path: wd + asA, body: widget},
				{method: "GET", path: x + "/status"},
				{
					method: "MERGE",
					path:   x + "/status" + asB,
					body:   `{"metadata":{"labels":{"a":"1"},"finalizers":["example.com/x"]},"spec":{"size":9},"status":{"phase":"Good"}}`,
				},
				{
					method: "PUT",
					path:   x + "/status" + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","resourceVersion":"${3.metadata.resourceVersion}"},"status":{"count":5}}`,
				},
				{
					method: "PUT",
					path:   x + "/status" + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","resourceVersion":"${3.metadata.resourceVersion}"},"status":{"count":6}}`,
				},
			},
		},
		{
			"status by apply",
			"an entry of its own, keyed conditions, and 404 where nothing is",
			[]step{
				{
					method: "APPLY",
					path:   x + "/status" + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"count":1}}`,
				},
				{method: "APPLY", path: x + asA, body: widget},
				{
					method: "APPLY",
					path:   x + "/status" + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
				},
				{
					method: "APPLY",
					path:   x + "/status" + asB,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"size":8},"status":{"conditions":[{"type":"Valid","status":"True"}]}}`,
				},
				{method: "APPLY", path: x + "/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"}}`},
				{method: "APPLY", path: x + asA, body: widget},
			},
		},
		{
			"a status that is not valid",
			"its fields are named from the root",
			[]step{
				{method: "POST", path: wd, body: widget},
				{method: "MERGE", path: x + "/status", body: `{"status":{"phase":"Odd","count":"x"}}`},
				{
					method: "APPLY",
					path:   x + "/status" + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"nope":1}}`,
				},
				{method: "MERGE", path: x + "/status", body: `{"status":{"nope":1}}`},
				{method: "PUT", path: x + "/status", body: widget},
			},
		},
		{
			"a status that is no subresource",
			"is part of the object and of the generation",
			[]step{
				{
					method: "POST",
					path:   gd,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"1"},"status":{"phase":"x"}}`,
				},
				{
					method: "MERGE",
					path:   gd + "/NS",
					body:   `{"status":{"phase":"y"}}`,
				},
				{method: "MERGE", path: gd + "/NS/status", body: `{"status":{"phase":"z"}}`},
				{method: "DELETE", path: gd + "/NS"},
			},
		},
		{
			"two versions",
			"each shows the object with its own defaults and fields",
			[]step{
				{
					method: "APPLY",
					path:   gd + "/NS" + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"1"}}`,
				},
				{method: "GET", path: "/apis/mem.example.com/v1beta1/gadgets/NS"},
				{
					method: "APPLY",
					path:   "/apis/mem.example.com/v1beta1/gadgets/NS" + asA,
					body:   `{"apiVersion":"mem.example.com/v1beta1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"2"}}`,
				},
				{method: "GET", path: gd + "/NS"},
				{
					method: "APPLY",
					path:   gd + "/NS" + asB,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"3"}}`,
				},
				{method: "DELETE", path: gd + "/NS"},
			},
		},
		{
			"cluster-scoped",
			"a namespace in the path is not served, one in the body is dropped",
			[]step{
				{method: "GET", path: "/apis/mem.example.com/v1/namespaces/NS/gadgets/x"},
				{
					method: "POST",
					path:   gd,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS","namespace":"other"}}`,
				},
				{method: "DELETE", path: gd + "/NS"},
			},
		},
		{"CRDs", "can be read", []step{{method: "GET", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/none.mem.example.com"}}},
	}
}
