import json, collections
from tests.support import corpus
c=collections.Counter()
for r in corpus.captured("json"):
    if r.value is None: c[r.topic,'tomb']+=1; continue
    d=json.loads(r.value)
    if 'op' in d: c[r.topic,d['op'],'before' if d.get('before') else '']+=1
for k,v in sorted(c.items()): print(k,v)
