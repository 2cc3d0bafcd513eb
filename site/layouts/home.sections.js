{{- /* What is searched: every page by its headings, below which its text stands. */ -}}
{{- $sections := slice -}}
{{- $root := replaceRE `index\.html$` "" .RelPermalink -}}
{{- range site.Pages -}}
  {{- $page := partial "title" . -}}{{- $address := strings.TrimPrefix $root .RelPermalink | default "index.html" -}}
  {{- $marked := replaceRE `<a class="anchor"[^>]*>#</a>` "" .Content | replaceRE `<h([1-4]) id="([^"]+)">(.*?)</h[1-4]>` "\x00$2\x01$3\x01" -}}
  {{- range after 1 (split $marked "\x00") -}}
    {{- $parts := split . "\x01" -}}
    {{- $text := index $parts 2 | replaceRE `<(/t[dh]|br|/p|/li)>` " " | plainify | htmlUnescape | replaceRE `\s+` " " | strings.TrimSpace -}}
    {{- $sections = $sections | append (dict "page" $page
      "heading" (index $parts 1 | plainify | htmlUnescape | strings.TrimSpace)
      "address" (printf "%s#%s" $address (index $parts 0))
      "text" $text) -}}
  {{- end -}}
{{- end -}}
const sections = {{ $sections | jsonify (dict "noHTMLEscape" true) }}
