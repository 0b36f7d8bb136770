#-
Off Statistics;
Symbols a, b, c, d, e, f;
Local F = (a + b + c + d + e + f)^12;
.sort
id a = b - c;
.sort
id b = d + e;
.sort
id c = e - f;
.sort
Print;
.end
