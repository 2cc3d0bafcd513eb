//go:build controlplane

package memcluster_test

// readRows returns the rows about GET and LIST.
func readRows() []row {
	three := []step{
		{method: "POST", path: cm, body: `{"metadata":{"name":"b","labels":{"app":"x"}}}`},
		{method: "POST", path: cm, body: `{"metadata":{"name":"a","labels":{"app":"y"}}}`},
		{method: "POST", path: cm, body: `{"metadata":{"name":"c"}}`},
	}
	list := func(queries ...string) []step {
		steps := three
		for _, q := range queries {
			steps = append(steps[:len(steps):len(steps)], step{method: "GET", path: cm + q})
		}
		return steps
	}
	return []row{
		{"get", "404 with details", []step{{method: "GET", path: cm + "/x"}, {method: "GET", path: wd + "/x"}}},
		{
			"list",
			"in the order of names; empty of a namespace that is not there",
			list("", "?labelSelector=nothing", "-nothing"[:0]+"?limit=500&resourceVersion=0"),
		},
		{
			"label selectors",
			"equality, sets, existence",
			list("?labelSelector=app%3Dx", "?labelSelector=app+in+(x,y)", "?labelSelector=app!%3Dx", "?labelSelector=!app", "?labelSelector=a+b+c"),
		},
		{
			"field selectors",
			"name and namespace",
			list(
				"?fieldSelector=metadata.name%3Da",
				"?fieldSelector=metadata.name!%3Da",
				"?fieldSelector=metadata.namespace%3DNS",
				"?fieldSelector=metadata.name%3Da,metadata.namespace%3Dother",
			),
		},
		{
			"field selectors of custom kinds",
			"others are not supported",
			[]step{
				{method: "POST", path: wd, body: widget},
				{method: "GET", path: wd + "?fieldSelector=metadata.name%3Dx"},
				{method: "GET", path: wd + "?fieldSelector=spec.size%3D1"},
			},
		},
		{"list of custom resources", "items say what they are", []step{{method: "POST", path: wd, body: widget}, {method: "GET", path: wd}}},
		{
			"pages",
			"limit and continue",
			append(
				list("?limit=2"),
				step{method: "GET", path: cm + "?limit=2&continue=${4.metadata.continue}"},
				step{method: "GET", path: cm + "?limit=1&labelSelector=app"},
			),
		},
		{
			"pages are of one version",
			"what is written between them is not in them",
			append(list("?limit=2"), step{method: "DELETE", path: cm + "/c"}, step{method: "POST", path: cm, body: `{"metadata":{"name":"d"}}`},
				step{method: "GET", path: cm + "?limit=2&continue=${4.metadata.continue}"}),
		},
		{
			"list at a version",
			"as it was then, or later",
			append(
				list("?resourceVersion=${2.metadata.resourceVersion}&resourceVersionMatch=Exact"),
				step{method: "GET", path: cm + "?resourceVersion=999999999&resourceVersionMatch=NotOlderThan"},
			),
		},
		{
			"list options that are not valid",
			"422",
			append(
				list("?resourceVersionMatch=Exact", "?resourceVersion=0&resourceVersionMatch=Exact", "?sendInitialEvents=true", "?resourceVersion=abc"),
				step{method: "GET", path: cm + "?continue=nonsense", message: true},
			),
		},
		{
			"metadata alone",
			"PartialObjectMetadata",
			[]step{
				{method: "POST", path: wd, body: widget},
				{
					method: "GET",
					path:   wd,
					accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
				},
				{method: "GET", path: wd + "/x", accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
				{method: "GET", path: wd + "/y", accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
			},
		},
		{"discovery of one group", "the names, scopes and versions of what is served", []step{{method: "GET", path: "/apis/mem.example.com"}}},
	}
}

// watchRows returns the rows about watches.
func watchRows() []row {
	from := cm + "?watch=true&resourceVersion=${1.metadata.resourceVersion}"
	return []row{
		{
			"watch",
			"added, modified, deleted",
			[]step{
				{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`},
				{method: "GET", path: from, watch: true},
				{method: "POST", path: cm, body: configMapA},
				{
					method: "MERGE",
					path:   cm + "/x",
					body:   `{"data":{"k":"2"}}`,
				},
				{method: "MERGE", path: cm + "/x", body: `{"data":{"k":"2"}}`},
				{method: "DELETE", path: cm + "/x"},
				{events: 3, of: 2},
			},
		},
		{
			"watch from the past",
			"what has happened since is told",
			[]step{
				{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`},
				{method: "POST", path: cm, body: configMapA},
				{method: "DELETE", path: cm + "/x"},
				{method: "GET", path: from, watch: true},
				{events: 2, of: 4},
			},
		},
		{
			"watch from now",
			"what is there is added",
			[]step{
				{method: "POST", path: cm, body: `{"metadata":{"name":"b"}}`},
				{method: "POST", path: cm, body: `{"metadata":{"name":"a"}}`},
				{
					method: "GET",
					path:   cm + "?watch=true&resourceVersion=0&labelSelector=!nothing&fieldSelector=metadata.name%3Da",
					watch:  true,
				},
				{method: "MERGE", path: cm + "/a", body: `{"data":{"k":"2"}}`},
				{events: 2, of: 3},
			},
		},
		{
			"watch with initial events",
			"what is there, and a bookmark that ends it",
			[]step{
				{method: "POST", path: wd, body: widget},
				{
					method: "GET",
					path:   wd + "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
					watch:  true,
				},
				{method: "MERGE", path: wd + "/x", body: `{"spec":{"size":2}}`},
				{events: 3, of: 2},
			},
		},
		{
			"watch with initial events of a built-in kind",
			"the same",
			[]step{
				{method: "POST", path: cm, body: `{"metadata":{"name":"b","labels":{"a":"NS"}}}`},
				{
					method: "GET",
					path:   cm + "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&labelSelector=a%3DNS",
					watch:  true,
				},
				{events: 2, of: 2},
			},
		},
		{
			"watch with a selector",
			"an object that loses the label is deleted, one that gets it added",
			[]step{
				{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`},
				{method: "GET", path: from + "&labelSelector=a%3Db", watch: true},
				{
					method: "POST",
					path:   cm,
					body:   `{"metadata":{"name":"x"}}`,
				},
				{method: "MERGE", path: cm + "/x", body: `{"metadata":{"labels":{"a":"b"}}}`},
				{method: "MERGE", path: cm + "/x", body: `{"data":{"k":"1"}}`},
				{
					method: "MERGE",
					path:   cm + "/x",
					body:   `{"metadata":{"labels":{"a":"c"}}}`,
				},
				{method: "MERGE", path: cm + "/x", body: `{"metadata":{"labels":{"a":"b"}}}`},
				{method: "DELETE", path: cm + "/x"},
				{events: 5, of: 2},
			},
		},
		{
			"watch of a deletion with a finalizer",
			"modified, then deleted",
			[]step{
				{method: "POST", path: wd, body: heldWidget},
				{method: "GET", path: wd + "?watch=true&resourceVersion=${1.metadata.resourceVersion}", watch: true},
				{method: "DELETE", path: wd + "/x"},
				{method: "MERGE", path: wd + "/x", body: `{"metadata":{"finalizers":null}}`},
				{events: 2, of: 2},
			},
		},
		{
			"watch of metadata",
			"PartialObjectMetadata",
			[]step{
				{method: "POST", path: wd, body: widget},
				{
					method: "GET",
					path:   wd + "?watch=true",
					watch:  true,
					accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
				},
				{events: 1, of: 2},
			},
		},
		{
			"watch options that are not valid",
			"422",
			[]step{
				{method: "GET", path: cm + "?watch=true&sendInitialEvents=true"},
				{method: "GET", path: cm + "?watch=true&resourceVersionMatch=NotOlderThan"},
				{method: "GET", path: cm + "?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact"},
			},
		},
		{
			"no writes are no events",
			"dry runs and refused writes tell nothing",
			[]step{
				{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`},
				{method: "GET", path: from, watch: true},
				{method: "POST", path: cm + "?dryRun=All", body: configMapA},
				{
					method: "APPLY",
					path:   cm + "/first" + asA,
					body:   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first","uid":"x"}}`,
				},
				{method: "POST", path: cm, body: `{"metadata":{"name":"last"}}`},
				{events: 1, of: 2},
			},
		},
	}
}
