//go:build controlplane

package memcluster_test

// customizing are the rows about custom kinds: defaults, pruning, validation, rules, status, generation, versions.
func customizing() []row {
	x := wd + "/x"
	return []row{
		{"defaults", "of fields, of items, and of null", []step{{method: "POST", path: wd, body: widgetWith(`{"nested":{"must":"a"},"ports":[{"name":"a"}],"size":null,"maybe":null,"color":null}`)},
			{method: "MERGE", path: x, body: `{"spec":{"size":null,"nested":null}}`}}},
		{"no spec", "nothing is made where the parent is missing", []step{{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"}}`}}},
		{"validation", "each rule has its cause", []step{
			{method: "POST", path: wd, body: widgetWith(`{"size":101,"color":"blue","name":"TOO-LONG-NAME","nested":{},"port":true,"ratio":"x"}`)},
			{method: "POST", path: wd, body: widgetWith(`{"name":"TOOLONGNAME"}`)}, {method: "POST", path: wd, body: widgetWith(`{"name":"ABC","size":-1}`)},
			{method: "POST", path: wd, body: widgetWith(`[]`)}, {method: "POST", path: wd, body: widgetWith(`{"size":1.5}`)}}},
		{"apply of what is not valid by its schema", "422", []step{{method: "APPLY", path: x + asA, body: widgetWith(`{"size":101,"color":"blue"}`)},
			{method: "APPLY", path: x + asA + "&dryRun=All", body: widgetWith(`{"size":101}`)}}},
		{"lists that are not valid", "duplicates in sets and keyed lists", []step{{method: "POST", path: wd, body: widgetWith(`{"tags":["a","a"],"ports":[{"name":"a"},{"name":"a"}]}`)}}},
		{"rules", "with a field, a reason, and transitions", []step{{method: "POST", path: wd, body: widgetWith(`{"size":1,"min":2}`)}, {method: "POST", path: wd, body: widgetWith(`{"color":"red"}`)},
			{method: "MERGE", path: x, body: `{"spec":{"color":"green"}}`}, {method: "MERGE", path: x, body: `{"spec":{"color":null}}`}, {method: "MERGE", path: x, body: `{"spec":{"min":1}}`},
			{method: "APPLY", path: x + asA + force, body: widgetWith(`{"color":"green"}`)}}},
		{"generation", "counts changes of what is neither metadata nor status", []step{{method: "POST", path: wd, body: widget}, {method: "MERGE", path: x, body: `{"metadata":{"labels":{"a":"1"}}}`},
			{method: "MERGE", path: x, body: `{"spec":{"size":4}}`}, {method: "MERGE", path: x + "/status", body: `{"status":{"count":1}}`}, {method: "MERGE", path: x, body: `{"spec":{"size":4}}`}}},
		{"status on the main resource", "is ignored", []step{{method: "POST", path: wd, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"count":1}}`},
			{method: "MERGE", path: x + asA, body: `{"status":{"count":1}}`}, {method: "APPLY", path: x + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"size":1},"status":{"count":2}}`}}},
		{"the status subresource", "takes the status alone", []step{{method: "POST", path: wd + asA, body: widget}, {method: "GET", path: x + "/status"},
			{method: "MERGE", path: x + "/status" + asB, body: `{"metadata":{"labels":{"a":"1"},"finalizers":["example.com/x"]},"spec":{"size":9},"status":{"phase":"Good"}}`},
			{method: "PUT", path: x + "/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","resourceVersion":"${3.metadata.resourceVersion}"},"status":{"count":5}}`},
			{method: "PUT", path: x + "/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x","resourceVersion":"${3.metadata.resourceVersion}"},"status":{"count":6}}`}}},
		{"status by apply", "an entry of its own, keyed conditions, and 404 where nothing is", []step{
			{method: "APPLY", path: x + "/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"count":1}}`}, {method: "APPLY", path: x + asA, body: widget},
			{method: "APPLY", path: x + "/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
			{method: "APPLY", path: x + "/status" + asB, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"size":8},"status":{"conditions":[{"type":"Valid","status":"True"}]}}`},
			{method: "APPLY", path: x + "/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"}}`},
			{method: "APPLY", path: x + asA, body: widget}}},
		{"a status that is not valid", "its fields are named from the root", []step{{method: "POST", path: wd, body: widget}, {method: "MERGE", path: x + "/status", body: `{"status":{"phase":"Odd","count":"x"}}`},
			{method: "APPLY", path: x + "/status" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Widget","metadata":{"name":"x"},"status":{"nope":1}}`},
			{method: "MERGE", path: x + "/status", body: `{"status":{"nope":1}}`}, {method: "PUT", path: x + "/status", body: widget}}},
		{"a status that is no subresource", "is part of the object and of the generation", []step{
			{method: "POST", path: gd, body: `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"1"},"status":{"phase":"x"}}`},
			{method: "MERGE", path: gd + "/NS", body: `{"status":{"phase":"y"}}`}, {method: "MERGE", path: gd + "/NS/status", body: `{"status":{"phase":"z"}}`}, {method: "DELETE", path: gd + "/NS"}}},
		{"two versions", "each shows the object with its own defaults and fields", []step{
			{method: "APPLY", path: gd + "/NS" + asA, body: `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"1"}}`},
			{method: "GET", path: "/apis/mem.example.com/v1beta1/gadgets/NS"},
			{method: "APPLY", path: "/apis/mem.example.com/v1beta1/gadgets/NS" + asA, body: `{"apiVersion":"mem.example.com/v1beta1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"2"}}`},
			{method: "GET", path: gd + "/NS"},
			{method: "APPLY", path: gd + "/NS" + asB, body: `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS"},"spec":{"a":"3"}}`},
			{method: "DELETE", path: gd + "/NS"}}},
		{"cluster-scoped", "a namespace in the path is not served, one in the body is dropped", []step{{method: "GET", path: "/apis/mem.example.com/v1/namespaces/NS/gadgets/x"},
			{method: "POST", path: gd, body: `{"apiVersion":"mem.example.com/v1","kind":"Gadget","metadata":{"name":"NS","namespace":"other"}}`}, {method: "DELETE", path: gd + "/NS"}}},
		{"CRDs", "can be read", []step{{method: "GET", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/none.mem.example.com"}}},
	}
}

// deleting are the rows about DELETE and the garbage collector.
func deleting() []row {
	const policy = `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"`
	x := cm + "/x"
	child := func(name, owner, more string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"` + owner + `"` + more + `}]}}`
	}
	return []row{
		{"delete", "the object is gone at once", []step{{method: "POST", path: cm, body: configMapA}, {method: "DELETE", path: x}, {method: "GET", path: x}, {method: "DELETE", path: x}}},
		{"delete of a custom resource", "the same", []step{{method: "POST", path: wd, body: widget}, {method: "DELETE", path: wd + "/x", body: policy + `Background"}`}, {method: "DELETE", path: wd + "/x"}}},
		{"delete with preconditions", "409 for another uid or version", []step{{method: "POST", path: cm, body: configMapA},
			{method: "DELETE", path: x, body: `{"preconditions":{"uid":"11111111-2222-3333-4444-555555555555"}}`}, {method: "DELETE", path: x, body: `{"preconditions":{"resourceVersion":"1"}}`},
			{method: "DELETE", path: x, body: `{"preconditions":{"uid":"${1.metadata.uid}","resourceVersion":"${1.metadata.resourceVersion}"}}`}}},
		{"delete with options that are not valid", "422", []step{{method: "POST", path: cm, body: configMapA}, {method: "DELETE", path: x, body: policy + `Sideways"}`},
			{method: "DELETE", path: x, body: `{"propagationPolicy":"Orphan","orphanDependents":true}`}, {method: "DELETE", path: x, body: `{"dryRun":["Some"]}`}, {method: "DELETE", path: x + "?propagationPolicy=Sideways"}}},
		{"delete with a finalizer", "the object is terminating until it is removed", []step{{method: "POST", path: cm, body: held}, {method: "DELETE", path: x}, {method: "DELETE", path: x},
			{method: "MERGE", path: x + asA, body: `{"data":{"k":"1"}}`}, {method: "JSON", path: x + asA, body: `[{"op":"remove","path":"/metadata/finalizers/0"}]`}, {method: "GET", path: x}}},
		{"delete of a custom resource with a finalizer", "its generation counts the deletion once", []step{{method: "POST", path: wd, body: heldWidget}, {method: "DELETE", path: wd + "/x"}, {method: "DELETE", path: wd + "/x"},
			{method: "MERGE", path: wd + "/x", body: `{"metadata":{"finalizers":null}}`}, {method: "GET", path: wd + "/x"}}},
		{"dry-run delete", "answered and not done", []step{{method: "POST", path: cm, body: configMapA}, {method: "DELETE", path: x, body: `{"dryRun":["All"]}`}, {method: "GET", path: x},
			{method: "MERGE", path: x, body: `{"metadata":{"finalizers":["example.com/hold"]}}`}, {method: "DELETE", path: x + "?dryRun=All"}, {method: "GET", path: x}}},
		{"dry-run removal of the last finalizer", "answered and not done", []step{{method: "POST", path: cm, body: held}, {method: "DELETE", path: x}, {method: "MERGE", path: x + "?dryRun=All", body: `{"metadata":{"finalizers":null}}`},
			{method: "GET", path: x}}},
		{"delete in the background", "dependents are collected", []step{{method: "POST", path: cm, body: configMapA}, {method: "POST", path: cm, body: child("c", "${1.metadata.uid}", "")},
			{method: "DELETE", path: x, body: policy + `Background"}`}, {method: "GET", path: cm + "/c", collect: true}}},
		{"delete in the foreground", "a finalizer holds the owner until its dependents are gone", []step{{method: "POST", path: cm, body: held},
			{method: "POST", path: cm, body: child("c", "${1.metadata.uid}", `,"blockOwnerDeletion":true`)}, {method: "DELETE", path: x, body: policy + `Foreground"}`},
			{method: "GET", path: cm + "/c", collect: true}, {method: "GET", path: x, collect: true}}},
		{"delete that leaves orphans", "dependents lose their owner", []step{{method: "POST", path: cm, body: held}, {method: "POST", path: cm, body: child("c", "${1.metadata.uid}", "")},
			{method: "DELETE", path: x, body: policy + `Orphan"}`}, {method: "GET", path: x, collect: true}, {method: "GET", path: cm + "/c", collect: true}}},
		{"two owners", "the one that is gone is taken off", []step{{method: "POST", path: cm, body: configMapA}, {method: "POST", path: cm, body: `{"metadata":{"name":"y"}}`},
			{method: "POST", path: cm, body: `{"metadata":{"name":"c","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"${1.metadata.uid}"},{"apiVersion":"v1","kind":"ConfigMap","name":"y","uid":"${2.metadata.uid}"}]}}`},
			{method: "DELETE", path: x}, {method: "GET", path: cm + "/c", collect: true}}},
		{"owners of another uid", "are gone", []step{{method: "POST", path: wd, body: widget},
			{method: "POST", path: cm, body: `{"metadata":{"name":"c","ownerReferences":[{"apiVersion":"mem.example.com/v1","kind":"Widget","name":"x","uid":"11111111-2222-3333-4444-555555555555"}]}}`}, {method: "GET", path: cm + "/c", collect: true}}},
		{"chains", "dependents of dependents go, too", []step{{method: "POST", path: wd, body: widget},
			{method: "POST", path: cm, body: `{"metadata":{"name":"x","ownerReferences":[{"apiVersion":"mem.example.com/v1","kind":"Widget","name":"x","uid":"${1.metadata.uid}"}]}}`},
			{method: "POST", path: cm, body: child("c", "${2.metadata.uid}", "")}, {method: "DELETE", path: wd + "/x", body: policy + `Foreground"}`}, {method: "GET", path: wd + "/x", collect: true}, {method: "GET", path: cm + "/c", collect: true}}},
		{"namespaces", "a terminating one takes nothing new, and goes with what is in it", []step{{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"NS-b"}}`},
			{method: "POST", path: "/api/v1/namespaces/NS-b/configmaps", body: held}, {method: "DELETE", path: "/api/v1/namespaces/NS-b"},
			{method: "POST", path: "/api/v1/namespaces/NS-b/configmaps", body: `{"metadata":{"name":"y"}}`},
			{method: "APPLY", path: "/apis/mem.example.com/v1/namespaces/NS-b/widgets/x" + asA, body: widget},
			{method: "GET", path: "/api/v1/namespaces/NS-b/configmaps/x", collect: true}, {method: "MERGE", path: "/api/v1/namespaces/NS-b/configmaps/x", body: `{"metadata":{"finalizers":null}}`},
			{method: "GET", path: "/api/v1/namespaces/NS-b", collect: true}}},
		{"namespaces by apply", "they get their label and phase", []step{{method: "APPLY", path: "/api/v1/namespaces/NS-c" + asA, body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"NS-c","labels":{"a":"b"}}}`},
			{method: "APPLY", path: "/api/v1/namespaces/NS-c" + asA, body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"NS-c","labels":{"c":"d"}}}`}}},
	}
}

// reading are the rows about GET and LIST.
func reading() []row {
	three := []step{{method: "POST", path: cm, body: `{"metadata":{"name":"b","labels":{"app":"x"}}}`}, {method: "POST", path: cm, body: `{"metadata":{"name":"a","labels":{"app":"y"}}}`},
		{method: "POST", path: cm, body: `{"metadata":{"name":"c"}}`}}
	list := func(queries ...string) []step {
		steps := three
		for _, q := range queries {
			steps = append(steps[:len(steps):len(steps)], step{method: "GET", path: cm + q})
		}
		return steps
	}
	return []row{
		{"get", "404 with details", []step{{method: "GET", path: cm + "/x"}, {method: "GET", path: wd + "/x"}}},
		{"list", "in the order of names; empty of a namespace that is not there", list("", "?labelSelector=nothing", "-nothing"[:0]+"?limit=500&resourceVersion=0")},
		{"label selectors", "equality, sets, existence", list("?labelSelector=app%3Dx", "?labelSelector=app+in+(x,y)", "?labelSelector=app!%3Dx", "?labelSelector=!app", "?labelSelector=a+b+c")},
		{"field selectors", "name and namespace", list("?fieldSelector=metadata.name%3Da", "?fieldSelector=metadata.name!%3Da", "?fieldSelector=metadata.namespace%3DNS", "?fieldSelector=metadata.name%3Da,metadata.namespace%3Dother")},
		{"field selectors of custom kinds", "others are not supported", []step{{method: "POST", path: wd, body: widget}, {method: "GET", path: wd + "?fieldSelector=metadata.name%3Dx"}, {method: "GET", path: wd + "?fieldSelector=spec.size%3D1"}}},
		{"list of custom resources", "items say what they are", []step{{method: "POST", path: wd, body: widget}, {method: "GET", path: wd}}},
		{"pages", "limit and continue", append(list("?limit=2"), step{method: "GET", path: cm + "?limit=2&continue=${4.metadata.continue}"}, step{method: "GET", path: cm + "?limit=1&labelSelector=app"})},
		{"pages are of one version", "what is written between them is not in them", append(list("?limit=2"), step{method: "DELETE", path: cm + "/c"}, step{method: "POST", path: cm, body: `{"metadata":{"name":"d"}}`},
			step{method: "GET", path: cm + "?limit=2&continue=${4.metadata.continue}"})},
		{"list at a version", "as it was then, or later", append(list("?resourceVersion=${2.metadata.resourceVersion}&resourceVersionMatch=Exact"), step{method: "GET", path: cm + "?resourceVersion=999999999&resourceVersionMatch=NotOlderThan"})},
		{"list options that are not valid", "422", append(list("?resourceVersionMatch=Exact", "?resourceVersion=0&resourceVersionMatch=Exact", "?sendInitialEvents=true", "?resourceVersion=abc"),
			step{method: "GET", path: cm + "?continue=nonsense", message: true})},
		{"metadata alone", "PartialObjectMetadata", []step{{method: "POST", path: wd, body: widget},
			{method: "GET", path: wd, accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}, {method: "GET", path: wd + "/x", accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"},
			{method: "GET", path: wd + "/y", accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}}},
		{"discovery of one group", "the names, scopes and versions of what is served", []step{{method: "GET", path: "/apis/mem.example.com"}}},
	}
}

// watching are the rows about watches.
func watching() []row {
	from := cm + "?watch=true&resourceVersion=${1.metadata.resourceVersion}"
	return []row{
		{"watch", "added, modified, deleted", []step{{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`}, {method: "GET", path: from, watch: true}, {method: "POST", path: cm, body: configMapA},
			{method: "MERGE", path: cm + "/x", body: `{"data":{"k":"2"}}`}, {method: "MERGE", path: cm + "/x", body: `{"data":{"k":"2"}}`}, {method: "DELETE", path: cm + "/x"}, {events: 3, of: 2}}},
		{"watch from the past", "what has happened since is told", []step{{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`}, {method: "POST", path: cm, body: configMapA}, {method: "DELETE", path: cm + "/x"},
			{method: "GET", path: from, watch: true}, {events: 2, of: 4}}},
		{"watch from now", "what is there is added", []step{{method: "POST", path: cm, body: `{"metadata":{"name":"b"}}`}, {method: "POST", path: cm, body: `{"metadata":{"name":"a"}}`},
			{method: "GET", path: cm + "?watch=true&resourceVersion=0&labelSelector=!nothing&fieldSelector=metadata.name%3Da", watch: true}, {method: "MERGE", path: cm + "/a", body: `{"data":{"k":"2"}}`}, {events: 2, of: 3}}},
		{"watch with initial events", "what is there, and a bookmark that ends it", []step{{method: "POST", path: wd, body: widget},
			{method: "GET", path: wd + "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan", watch: true}, {method: "MERGE", path: wd + "/x", body: `{"spec":{"size":2}}`}, {events: 3, of: 2}}},
		{"watch with initial events of a built-in kind", "the same", []step{{method: "POST", path: cm, body: `{"metadata":{"name":"b","labels":{"a":"NS"}}}`},
			{method: "GET", path: cm + "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&labelSelector=a%3DNS", watch: true}, {events: 2, of: 2}}},
		{"watch with a selector", "an object that loses the label is deleted, one that gets it added", []step{{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`}, {method: "GET", path: from + "&labelSelector=a%3Db", watch: true},
			{method: "POST", path: cm, body: `{"metadata":{"name":"x"}}`}, {method: "MERGE", path: cm + "/x", body: `{"metadata":{"labels":{"a":"b"}}}`}, {method: "MERGE", path: cm + "/x", body: `{"data":{"k":"1"}}`},
			{method: "MERGE", path: cm + "/x", body: `{"metadata":{"labels":{"a":"c"}}}`}, {method: "MERGE", path: cm + "/x", body: `{"metadata":{"labels":{"a":"b"}}}`}, {method: "DELETE", path: cm + "/x"}, {events: 5, of: 2}}},
		{"watch of a deletion with a finalizer", "modified, then deleted", []step{{method: "POST", path: wd, body: heldWidget}, {method: "GET", path: wd + "?watch=true&resourceVersion=${1.metadata.resourceVersion}", watch: true},
			{method: "DELETE", path: wd + "/x"}, {method: "MERGE", path: wd + "/x", body: `{"metadata":{"finalizers":null}}`}, {events: 2, of: 2}}},
		{"watch of metadata", "PartialObjectMetadata", []step{{method: "POST", path: wd, body: widget},
			{method: "GET", path: wd + "?watch=true", watch: true, accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}, {events: 1, of: 2}}},
		{"watch options that are not valid", "422", []step{{method: "GET", path: cm + "?watch=true&sendInitialEvents=true"}, {method: "GET", path: cm + "?watch=true&resourceVersionMatch=NotOlderThan"},
			{method: "GET", path: cm + "?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact"}}},
		{"no writes are no events", "dry runs and refused writes tell nothing", []step{{method: "POST", path: cm, body: `{"metadata":{"name":"first"}}`}, {method: "GET", path: from, watch: true}, {method: "POST", path: cm + "?dryRun=All", body: configMapA},
			{method: "APPLY", path: cm + "/first" + asA, body: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"first","uid":"x"}}`}, {method: "POST", path: cm, body: `{"metadata":{"name":"last"}}`}, {events: 1, of: 2}}},
	}
}
