C     A legacy code: fixed form, mpif.h, its whole state in COMMON, SAVE
C     and DATA. A ring of real*8 arrays, reductions, a derived type.
      PROGRAM LEGACY
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER N
      PARAMETER (N = 500)
      DOUBLE PRECISION FIELD(N), HALO(N), TOTAL(N)
      INTEGER ME, NP, STEP
      COMMON /STATE/ FIELD, HALO, TOTAL
      COMMON /WHO/ ME, NP, STEP
      INTEGER IERR, I, K, CALLS, STATUS(MPI_STATUS_SIZE), BAD, ALLBAD
      INTEGER REQ(2), STATS(MPI_STATUS_SIZE, 2), COL, CNT, FLAG
      LOGICAL DONE
      DOUBLE PRECISION MATRIX(10, 20), T
      CHARACTER*(MPI_MAX_PROCESSOR_NAME) NAME
      EXTERNAL COUNTS
      INTEGER COUNTS
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, ME, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, NP, IERR)
      BAD = 0
      DO 10 I = 1, N
         FIELD(I) = ME * 1000 + I
   10 CONTINUE
      DO 20 STEP = 1, 20
         CALL EXCHNG
         DO 15 I = 1, N
            IF (HALO(I) .NE. MOD(ME + NP - STEP, NP) * 1000 + I .AND.
     &          MOD(NP * 20 + ME - STEP, NP) * 1000 + I .NE. HALO(I))
     &         BAD = BAD + 1
            FIELD(I) = HALO(I)
   15    CONTINUE
   20 CONTINUE
      DO 25 I = 1, ME + 2
         CALLS = COUNTS()
   25 CONTINUE
      IF (CALLS .NE. 7 + ME + 2) BAD = BAD + 1
      CALL MPI_ALLREDUCE(FIELD, TOTAL, N, MPI_DOUBLE_PRECISION,
     &                   MPI_SUM, MPI_COMM_WORLD, IERR)
      DO 30 I = 1, N
         IF (TOTAL(I) .NE. 500.D0 * NP * (NP - 1) + DBLE(I) * NP)
     &      BAD = BAD + 1
   30 CONTINUE
C     IN_PLACE and BOTTOM are addresses in Fortran
      CALL MPI_ALLREDUCE(MPI_IN_PLACE, FIELD, N, MPI_DOUBLE_PRECISION,
     &                   MPI_MAX, MPI_COMM_WORLD, IERR)
      IF (FIELD(1) .NE. (NP - 1) * 1000 + 1) BAD = BAD + 1
C     a column type, waits with arrays of statuses
      DO 40 K = 1, 20
         DO 40 I = 1, 10
            MATRIX(I, K) = ME * 10000 + I * 100 + K
   40 CONTINUE
      CALL MPI_TYPE_VECTOR(20, 1, 10, MPI_DOUBLE_PRECISION, COL, IERR)
      CALL MPI_TYPE_COMMIT(COL, IERR)
      CALL MPI_IRECV(HALO, 20, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, 9,
     &               MPI_COMM_WORLD, REQ(1), IERR)
      CALL MPI_ISEND(MATRIX(3, 1), 1, COL, MOD(ME + 1, NP), 9,
     &               MPI_COMM_WORLD, REQ(2), IERR)
      CALL MPI_WAITALL(2, REQ, STATS, IERR)
      CALL MPI_GET_COUNT(STATS(1, 1), MPI_DOUBLE_PRECISION, CNT, IERR)
      IF (CNT .NE. 20) BAD = BAD + 1
      IF (STATS(MPI_SOURCE, 1) .NE. MOD(ME + NP - 1, NP)) BAD = BAD + 1
      IF (STATS(MPI_TAG, 1) .NE. 9) BAD = BAD + 1
      DO 50 K = 1, 20
         IF (HALO(K) .NE. MOD(ME+NP-1, NP)*10000 + 300 + K) BAD = BAD+1
   50 CONTINUE
      CALL MPI_TYPE_FREE(COL, IERR)
      CALL MPI_IPROBE(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, DONE,
     &                MPI_STATUS_IGNORE, IERR)
      IF (DONE) BAD = BAD + 1
      T = MPI_WTIME()
      CALL MPI_GET_PROCESSOR_NAME(NAME, CNT, IERR)
      IF (CNT .LT. 1 .OR. NAME(CNT:CNT) .EQ. ' ') BAD = BAD + 1
      IF (MPI_WTIME() .LT. T) BAD = BAD + 1
      CALL MPI_REDUCE(BAD, ALLBAD, 1, MPI_INTEGER, MPI_SUM, 0,
     &                MPI_COMM_WORLD, IERR)
      IF (ME .EQ. 0) THEN
         PRINT *, 'ranks', NP, 'sum', TOTAL(N), 'max', FIELD(N)
         IF (ALLBAD .EQ. 0) PRINT *, 'all checks hold'
         IF (ALLBAD .NE. 0) PRINT *, ALLBAD, ' checks FAILED'
      END IF
      CALL MPI_FINALIZE(IERR)
      IF (BAD .NE. 0) STOP 1
      END

      SUBROUTINE EXCHNG
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER N
      PARAMETER (N = 500)
      DOUBLE PRECISION FIELD(N), HALO(N), TOTAL(N)
      INTEGER ME, NP, STEP, IERR, STATUS(MPI_STATUS_SIZE)
      COMMON /STATE/ FIELD, HALO, TOTAL
      COMMON /WHO/ ME, NP, STEP
      CALL MPI_SENDRECV(FIELD, N, MPI_DOUBLE_PRECISION, MOD(ME + 1, NP),
     &                  STEP, HALO, N, MPI_DOUBLE_PRECISION,
     &                  MOD(ME + NP - 1, NP), STEP, MPI_COMM_WORLD,
     &                  STATUS, IERR)
      END

      INTEGER FUNCTION COUNTS()
      INTEGER K
      SAVE K
      DATA K /7/
      K = K + 1
      COUNTS = K
      END
