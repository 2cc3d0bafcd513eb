//go:build controlplane

package memcluster_test

// applyRows returns the rows about server-side apply.
func applyRows() []row {
	x := cm + "/x"
	apply := func(data string) string { return configMapWith("", data) }
	return []row{
		{
			"apply creates",
			"201, and an Apply entry",
			[]step{{method: "APPLY", path: x + asA, body: configMapA}, {method: "APPLY", path: x + asA, body: configMapA}},
		},
		{
			"apply removes",
			"a field that is not applied any more goes",
			[]step{{method: "APPLY", path: x + asA, body: apply(`{"k":"1","l":"2"}`)}, {method: "APPLY", path: x + asA, body: apply(`{"k":"1"}`)}},
		},
		{
			"apply shares",
			"two managers own an equal value; it goes when the second drops it",
			[]step{
				{method: "APPLY", path: x + asA, body: apply(`{"k":"1","l":"2"}`)},
				{
					method: "APPLY",
					path:   x + asB,
					body:   apply(`{"k":"1"}`),
				},
				{method: "APPLY", path: x + asA, body: apply(`{"l":"2"}`)},
				{method: "APPLY", path: x + asB, body: apply(`{}`)},
			},
		},
		{"apply conflicts", "409 with a cause for each field", []step{{method: "APPLY", path: x + asA, body: apply(`{"k":"1","l":"2"}`)},
			{method: "APPLY", path: x + asB, body: apply(`{"k":"3","l":"4"}`)}, {method: "GET", path: x}}},
		{
			"apply conflicts with updates",
			"the message names the operation",
			[]step{
				{method: "POST", path: cm + asA, body: configMapA},
				{
					method:  "MERGE",
					path:    x + "?fieldManager=c",
					body:    `{"data":{"l":"7"}}`,
					message: true,
				},
				{method: "APPLY", path: x + asB, body: apply(`{"k":"3","l":"4"}`)},
			},
		},
		{
			"apply by force",
			"the fields change hands",
			[]step{
				{method: "APPLY", path: x + asA, body: apply(`{"k":"1","l":"2"}`)},
				{method: "APPLY", path: x + asB + force, body: apply(`{"k":"3"}`)},
				{method: "APPLY", path: x + asA, body: apply(`{"l":"2"}`)},
			},
		},
		{
			"apply after an update by the same name",
			"the operation is part of who owns",
			[]step{
				{method: "APPLY", path: x + asA, body: apply(`{"k":"1"}`)},
				{
					method: "MERGE",
					path:   x + asA,
					body:   `{"data":{"k":"2"}}`,
				},
				{method: "APPLY", path: x + asA, body: apply(`{"k":"1"}`)},
				{method: "APPLY", path: x + asA + force, body: apply(`{"k":"1"}`)},
			},
		},
		{"create-only apply", "resourceVersion 1 creates, and conflicts with what is there, forced or not", []step{
			{method: "APPLY", path: x + asA, body: configMapWith(`,"resourceVersion":"1"`, `{"k":"1"}`)},
			{method: "APPLY", path: x + asA, body: configMapWith(`,"resourceVersion":"1"`, `{"k":"2"}`)},
			{method: "APPLY", path: x + asA + force, body: configMapWith(`,"resourceVersion":"1"`, `{"k":"2"}`)}}},
		{
			"create-only apply of a custom resource",
			"the same",
			[]step{
				{
					method: "APPLY",
					path:   wd + "/x" + asA,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","resourceVersion":"1"},"spec":{"size":2}}`,
				},
				{
					method: "APPLY",
					path:   wd + "/x" + asA + force,
					body:   `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","resourceVersion":"1"},"spec":{"size":3}}`,
				},
			},
		},
		{"apply with a uid", "409 where nothing is, 422 where another is", []step{
			{method: "APPLY", path: x + asA + force, body: configMapWith(`,"uid":"11111111-2222-3333-4444-555555555555"`, `{}`)},
			{method: "APPLY", path: x + asA, body: apply(`{"k":"1"}`)},
			{method: "APPLY", path: x + asA + force, body: configMapWith(`,"uid":"11111111-2222-3333-4444-555555555555"`, `{}`)},
			{method: "APPLY", path: x + asA + force, body: configMapWith(`,"uid":"${2.metadata.uid}"`, `{"k":"2"}`)}}},
		{
			"apply at a version",
			"409 where it has moved on",
			[]step{{method: "APPLY", path: x + asA, body: apply(`{"k":"1"}`)}, {method: "MERGE", path: x + asB, body: `{"data":{"z":"1"}}`},
				{method: "APPLY", path: x + asA, body: configMapWith(`,"resourceVersion":"${1.metadata.resourceVersion}"`, `{"k":"2"}`)},
				{method: "APPLY", path: x + asA, body: configMapWith(`,"resourceVersion":"${2.metadata.resourceVersion}"`, `{"k":"2"}`)},
				{method: "APPLY", path: x + asA, body: configMapWith(`,"resourceVersion":"nonsense"`, `{"k":"3"}`)}},
		},
		{
			"apply of what is not valid",
			"another version, managedFields, another name, no manager",
			[]step{
				{method: "APPLY", path: x + asA, body: `{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}`},
				{
					method: "APPLY",
					path:   x + asA,
					body:   configMapWith(`,"managedFields":[]`, `{}`),
				},
				{method: "APPLY", path: x + asA, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"}}`},
				{method: "APPLY", path: x + asA, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"elsewhere"}}`},
				{
					method: "APPLY",
					path:   x + asA,
					body:   `{"apiVersion":"v1","kind":"ConfigMap"}`,
				},
				{method: "APPLY", path: x + asA, body: `{"a: `, message: true},
				{method: "APPLY", path: x + asA, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"nope":1}`},
			},
		},
		{
			"apply of an unknown field",
			"a reasonless 500",
			[]step{
				{method: "APPLY", path: wd + "/x" + asA, body: widgetWith(`{"nope":1}`)},
				{method: "APPLY", path: wd + "/x" + asA, body: widgetWith(`{"size":"big"}`)},
				{
					method:  "APPLY",
					path:    wd + "/x" + asA,
					body:    widgetWith(`{"size":null}`),
					message: true,
				},
				{method: "APPLY", path: wd + "/x" + asA, body: widgetWith(`{"tags":["a","a"]}`)},
			},
		},
		{
			"dry-run apply",
			"of a new and of an old object",
			[]step{
				{method: "APPLY", path: x + asA + "&dryRun=All", body: apply(`{"k":"1"}`)},
				{method: "GET", path: x},
				{method: "APPLY", path: x + asA, body: apply(`{"k":"1"}`)},
				{method: "APPLY", path: x + asA + "&dryRun=All", body: apply(`{"k":"2"}`)},
				{method: "GET", path: x},
			},
		},
		{
			"apply to a terminating object",
			"200",
			[]step{{method: "POST", path: cm, body: held}, {method: "DELETE", path: x}, {method: "APPLY", path: x + asA, body: apply(`{"k":"1"}`)}},
		},
		{
			"apply of numbers",
			"int64 stays exact, a whole float becomes a number",
			[]step{
				{
					method: "APPLY",
					path:   wd + "/x" + asA,
					body:   widgetWith(`{"free":{"big":9007199254740993,"small":-1,"whole":2.0,"half":0.5},"ratio":1.0}`),
				},
				{
					method: "APPLY",
					path:   wd + "/x" + asA,
					body:   widgetWith(`{"free":{"big":9007199254740993,"small":-1,"whole":2,"half":0.5},"ratio":1}`),
				},
			},
		},
		{
			"apply to keyed lists",
			"items merge by their keys, which have defaults",
			[]step{
				{
					method: "APPLY",
					path:   wd + "/x" + asA,
					body:   widgetWith(`{"ports":[{"name":"a","number":1}]}`),
				},
				{method: "APPLY", path: wd + "/x" + asB, body: widgetWith(`{"ports":[{"name":"b","protocol":"UDP","number":2}]}`)},
				{
					method: "APPLY",
					path:   wd + "/x" + asB,
					body:   widgetWith(`{"ports":[{"name":"a","number":5}]}`),
				},
				{method: "APPLY", path: wd + "/x" + asA, body: widgetWith(`{}`)},
			},
		},
		{
			"apply to sets, atomic lists and maps",
			"a set is shared, an atom has one owner",
			[]step{
				{method: "APPLY", path: wd + "/x" + asA, body: widgetWith(`{"tags":["a","b"],"plain":["p"],"atom":{"k":"1"},"labels":{"l":"1"}}`)},
				{
					method: "APPLY",
					path:   wd + "/x" + asB,
					body:   widgetWith(`{"tags":["b","c"],"labels":{"m":"1"}}`),
				},
				{method: "APPLY", path: wd + "/x" + asB, body: widgetWith(`{"plain":["p","q"],"atom":{"j":"1"}}`)},
				{
					method: "APPLY",
					path:   wd + "/x" + asB + force,
					body:   widgetWith(`{"plain":["p","q"],"atom":{"j":"1"}}`),
				},
				{method: "APPLY", path: wd + "/x" + asA + force, body: widgetWith(`{"tags":["a"]}`)},
			},
		},
		{
			"apply to free maps",
			"maps merge, lists are atomic",
			[]step{
				{method: "APPLY", path: wd + "/x" + asA, body: widgetWith(`{"free":{"m":{"a":1},"l":[1,2]}}`)},
				{
					method: "APPLY",
					path:   wd + "/x" + asB,
					body:   widgetWith(`{"free":{"m":{"b":1},"l":[1,2]}}`),
				},
				{method: "APPLY", path: wd + "/x" + asB, body: widgetWith(`{"free":{"l":[1,3]}}`)},
			},
		},
		{"apply of owner references", "they are keyed by uid, so two managers own one each", []step{
			{method: "POST", path: cm, body: `{"metadata":{"name":"a"}}`}, {method: "POST", path: cm, body: `{"metadata":{"name":"b"}}`},
			{method: "APPLY", path: x + asA, body: configMapWith(`,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"${1.metadata.uid}"}]`, `{}`)},
			{method: "APPLY", path: x + asB, body: configMapWith(`,"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"${2.metadata.uid}"}]`, `{}`)},
			{method: "APPLY", path: x + asA, body: configMapWith(``, `{}`)},
			{method: "APPLY", path: wd + "/x" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"${1.metadata.uid}"}]}}`},
			{method: "APPLY", path: wd + "/x" + asB, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"${2.metadata.uid}"}]}}`}}},
		{
			"apply of finalizers and owners",
			"finalizers are a set, owner references keyed by uid",
			[]step{
				{method: "APPLY", path: x + asA, body: configMapWith(`,"finalizers":["example.com/a"]`, `{}`)},
				{
					method: "APPLY",
					path:   x + asB,
					body:   configMapWith(`,"finalizers":["example.com/b"],"labels":{"b":"1"}`, `{}`),
				},
				{method: "APPLY", path: x + asA, body: configMapWith(``, `{}`)},
				{method: "JSON", path: x + asA, body: `[{"op":"remove","path":"/metadata/finalizers/0"}]`},
			},
		},
	}
}
