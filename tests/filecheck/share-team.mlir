// PASSES: outline-kernels,share-team
//
// All threads run the program. No barrier between nests whose threads touch the same rows, nor where
// nothing is shared; one before and behind what the first thread does alone, before a nest that reads
// columns of rows, and before one that writes where another one still reads: views of the workspace
// share bytes. The stack belongs to @main, and the status is read when all are through.

// CHECK:       func.func private @GOMP_barrier()
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<64x64xf32>, %[[Y:.*]]: memref<64x64xf32>, %[[Z:.*]]: memref<64x64xf32>, %[[WS:.*]]: memref<16384xi8>) -> i32
// CHECK:         %[[STATUS:.*]] = memref.alloca() : memref<1xi32>
// CHECK:         memref.store %{{.*}}, %[[STATUS]]
// CHECK:         call @main_team(%[[X]], %[[Y]], %[[Z]], %[[WS]], %[[STATUS]], %{{.*}}, %{{.*}}) {polyblocks.each}
// CHECK:         %[[CODE:.*]] = memref.load %[[STATUS]]
// CHECK:         return %[[CODE]]
// CHECK-LABEL: func.func private @main_team
// CHECK-SAME:  %[[THREAD:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index)
// CHECK:         %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]]
// CHECK-NOT:     wait_for_team
// CHECK:         call @rows({{.*}}) {polyblocks.team}
// CHECK-NOT:     wait_for_team
// CHECK:         call @rows_again({{.*}}) {polyblocks.team}
// CHECK:         call @wait_for_team(%[[N]])
// CHECK-NEXT:    scf.if %[[FIRST]] {
// CHECK-NEXT:      func.call @alone(
// CHECK-NEXT:    }
// CHECK-NEXT:    call @wait_for_team(%[[N]])
// CHECK-NEXT:    call @columns({{.*}}) {polyblocks.team}
// CHECK:         call @wait_for_team(%[[N]])
// CHECK-NEXT:    call @reuse({{.*}}) {polyblocks.team}
// CHECK-NOT:     wait_for_team
// CHECK:         return
// CHECK-LABEL: func.func private @wait_for_team
// CHECK:         arith.cmpi ugt
// CHECK:         scf.if
// CHECK:           func.call @GOMP_barrier()

func.func @main(%x: memref<64x64xf32>, %y: memref<64x64xf32>, %z: memref<64x64xf32>, %ws: memref<16384xi8>) -> i32 {
  %status = memref.alloca() : memref<1xi32>
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i32
  memref.store %none, %status[%c0] : memref<1xi32>
  %a = memref.view %ws[%c0][] : memref<16384xi8> to memref<64x64xf32>
  %b = memref.view %ws[%c0][] : memref<16384xi8> to memref<4096xf32>
  affine.parallel (%i) = (0) to (64) {
    affine.for %j = 0 to 64 {
      %v = affine.load %x[%i, %j] : memref<64x64xf32>
      affine.store %v, %a[%i, %j] : memref<64x64xf32>
    }
  } {polyblocks.kernel = "rows", polyblocks.level = "team"}
  affine.parallel (%i) = (0) to (64) {
    affine.for %j = 0 to 64 {
      %v = affine.load %a[%i, %j] : memref<64x64xf32>
      %w = arith.negf %v : f32
      affine.store %w, %a[%i, %j] : memref<64x64xf32>
    }
  } {polyblocks.kernel = "rows_again", polyblocks.level = "team"}
  affine.for %i = 0 to 8 {
    %v = affine.load %a[%i, 0] : memref<64x64xf32>
    affine.store %v, %a[%i, 1] : memref<64x64xf32>
  } {polyblocks.kernel = "alone"}
  affine.parallel (%i) = (0) to (64) {
    affine.for %j = 0 to 64 {
      %v = affine.load %a[%j, %i] : memref<64x64xf32>
      affine.store %v, %y[%i, %j] : memref<64x64xf32>
    }
  } {polyblocks.kernel = "columns", polyblocks.level = "team"}
  affine.parallel (%i) = (0) to (64) {
    affine.for %j = 0 to 64 {
      %v = affine.load %y[%i, %j] : memref<64x64xf32>
      affine.store %v, %b[%i * 64 + %j] : memref<4096xf32>
    }
  } {polyblocks.kernel = "reuse", polyblocks.level = "team"}
  %code = memref.load %status[%c0] : memref<1xi32>
  return %code : i32
}
