# The five-point Laplacian of a rectangle, solved by PETSc with what it brings itself and with hypre, MUMPS and
# SuperLU_DIST; then its smallest eigenvalues by SLEPc.
import math
import sys
import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc
from slepc4py import SLEPc

n, m = 30, 24
say = PETSc.Sys.Print


def laplacian():
    a = PETSc.Mat().createAIJ([n * m, n * m], nnz=5)
    for row in range(*a.getOwnershipRange()):
        i, j = divmod(row, m)
        a[row, row] = 4.0
        for p, q in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= p < n and 0 <= q < m:
                a[row, p * m + q] = -1.0
    a.assemble()
    return a


a = laplacian()
x, b = a.createVecs()
b.set(1.0)
for method, preconditioner, factor in [
    ("cg", "jacobi", None),
    ("gmres", "bjacobi", None),
    ("cg", "gamg", None),
    ("pipecg", "jacobi", None),
    ("bcgs", "asm", None),
    ("cg", "hypre", None),
    ("preonly", "lu", "mumps"),
    ("preonly", "lu", "superlu_dist"),
]:
    x.set(0.0)
    solver = PETSc.KSP().create()
    solver.setOperators(a)
    solver.setType(method)
    solver.getPC().setType(preconditioner)
    if factor:
        solver.getPC().setFactorSolverType(factor)
    solver.setTolerances(rtol=1e-10)
    solver.solve(b, x)
    residual = (a * x - b).norm() / b.norm()
    assert residual < 1e-8, (method, preconditioner, factor, residual)
    say(f"{method}, {factor or preconditioner}: |x| = {x.norm():.6f}")

# A nonlinear problem on a distributed grid, whose ghost values come from the neighbours.
grid = PETSc.DMDA().create([24, 24], dof=1, stencil_width=1)


def bratu(solver, x, f):
    out = grid.getVecArray(f)
    local = grid.getLocalVec()
    grid.globalToLocal(x, local)
    u = grid.getVecArray(local)
    (x0, x1), (y0, y1) = grid.getRanges()
    for i in range(x0, x1):
        for j in range(y0, y1):
            if i in (0, 23) or j in (0, 23):
                out[i, j] = u[i, j]
            else:
                out[i, j] = 4 * u[i, j] - u[i - 1, j] - u[i + 1, j] - u[i, j - 1] - u[i, j + 1] - 0.01 * math.exp(u[i, j])
    grid.restoreLocalVec(local)


newton = PETSc.SNES().create()
newton.setDM(grid)
f = grid.createGlobalVec()
newton.setFunction(bratu, f)
newton.setUseMF(True)
newton.getKSP().getPC().setType("none")
newton.setTolerances(rtol=1e-10)
u = grid.createGlobalVec()
newton.solve(None, u)
assert newton.getConvergedReason() > 0
say(f"newton: max u = {u.max()[1]:.8f}")

eigen = SLEPc.EPS().create()
eigen.setOperators(a)
eigen.setProblemType(SLEPc.EPS.ProblemType.HEP)
eigen.setWhichEigenpairs(SLEPc.EPS.Which.SMALLEST_REAL)
eigen.setDimensions(nev=3)
eigen.setTolerances(1e-9, 2000)
eigen.solve()
found = [eigen.getEigenvalue(k).real for k in range(3)]
low = [[4 * math.sin(math.pi * k / (2 * (size + 1))) ** 2 for k in (1, 2)] for size in (n, m)]
for value, wanted in zip(found, (low[0][0] + low[1][0], low[0][1] + low[1][0], low[0][0] + low[1][1])):
    assert abs(value - wanted) < 1e-7, (found, low)
say("eigenvalues: " + ", ".join(f"{value:.7f}" for value in found))
