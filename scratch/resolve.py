import re,sys
def fix(p, f):
    s=open(p).read()
    s=re.sub(r'<<<<<<< [^\n]*\n(.*?)=======\n(.*?)>>>>>>> [^\n]*\n', lambda m: f(m.group(1),m.group(2)), s, flags=re.S)
    open(p,'w').write(s)
fix('docs/modules.md', lambda a,b: a)
fix('ingestd/paimon/table/read/point_read.py', lambda a,b: '''    `columns` (None: all), and includes rows of `fallback`. Memory holds the keys, the rows of one
    bucket that have these keys, and a part of a file.
''')
fix('ingestd/paimon/table/read/scan_options.py', lambda a,b: a.rstrip('\n')+''' `of_branch` returns
    the target of the same request for another branch of the table (None: by the scan options of
    that branch).
''')
