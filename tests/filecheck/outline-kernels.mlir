// PASSES: outline-kernels
//
// A team-level loop becomes a function of its range; a serial nest that names a kernel one without
// a range; a loop without a name stays. Constants are repeated inside, so that they can be folded.

memref.global "private" constant @w : memref<3xf32> = dense<[1.0, 2.0, 3.0]>

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<64x8xf32>, %[[Y:.*]]: memref<64x8xf32>, %[[WS:.*]]: memref<1024xi8>)
// CHECK:         %[[V0:.*]] = memref.view %[[WS]][%{{.*}}]
// CHECK:         %[[V1:.*]] = memref.view %[[WS]][%{{.*}}]
// CHECK:         %[[BEGIN:.*]] = arith.constant 0 : index
// CHECK:         %[[END:.*]] = arith.constant 64 : index
// CHECK:         call @scale(%[[BEGIN]], %[[END]], %[[X]], %[[Y]]) {polyblocks.team}
// CHECK-SAME:      (index, index, memref<64x8xf32>, memref<64x8xf32>) -> ()
// CHECK:         call @scale_1(%[[X]], %[[V0]])
// CHECK:         affine.for %{{.*}} = 0 to 2
// CHECK:         call @overlap(
// CHECK:         call @disjoint(
// CHECK:         return

func.func @main(%x: memref<64x8xf32>, %y: memref<64x8xf32>, %ws: memref<1024xi8>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %w = memref.get_global @w : memref<3xf32>
  %a = memref.view %ws[%c0][] : memref<1024xi8> to memref<64xf32>
  %b = memref.view %ws[%c256][] : memref<1024xi8> to memref<64xf32>
  %c = memref.view %ws[%c32][] : memref<1024xi8> to memref<64xf32>

  // CHECK-LABEL: func.func private @scale(
  // CHECK-SAME:    %[[B:[a-z0-9]*]]: index, %[[E:[a-z0-9]*]]: index,
  // CHECK-SAME:    %[[X:[a-z0-9]*]]: memref<64x8xf32> {llvm.dereferenceable = 2048 : i64, llvm.noalias, llvm.readonly},
  // CHECK-SAME:    %[[Y:[a-z0-9]*]]: memref<64x8xf32> {llvm.dereferenceable = 2048 : i64, llvm.noalias})
  // CHECK-SAME:    attributes {polyblocks.nests = ["scale"], polyblocks.trips = 64 : i64}
  // CHECK-DAG:     %[[W:.*]] = memref.get_global @w
  // CHECK-DAG:     %[[T:.*]] = memref.alloca() : memref<8xf32>
  // CHECK:         affine.for %[[I:.*]] = %[[B]] to %[[E]] {
  // CHECK-NOT:       memref.alloca
  // CHECK:           affine.load %[[W]][1]
  // CHECK:           affine.load %[[X]][%[[I]], %{{.*}}]
  // CHECK:           affine.store %{{.*}}, %[[Y]][%[[I]], %{{.*}}]
  affine.parallel (%i) = (0) to (64) {
    %t = memref.alloca() : memref<8xf32>
    %f = affine.load %w[1] : memref<3xf32>
    affine.for %j = 0 to 8 {
      %0 = affine.load %x[%i, %j] : memref<64x8xf32>
      %1 = arith.mulf %0, %f : f32
      affine.store %1, %t[%j] : memref<8xf32>
    }
    affine.for %j = 0 to 8 {
      %0 = affine.load %t[%j] : memref<8xf32>
      affine.store %0, %y[%i, %j] : memref<64x8xf32>
    }
  } {polyblocks.level = "team", polyblocks.kernel = "scale"}

  // CHECK-LABEL: func.func private @scale_1(
  // CHECK-NOT:     index
  // CHECK-SAME:    memref<64x8xf32>
  // CHECK:         affine.for %{{.*}} = 0 to 64
  affine.for %i = 0 to 64 {
    %0 = affine.load %x[%i, 0] : memref<64x8xf32>
    affine.store %0, %a[%i] : memref<64xf32>
  } {polyblocks.kernel = "scale"}

  affine.for %i = 0 to 2 {
    %0 = affine.load %x[%i, 0] : memref<64x8xf32>
    affine.store %0, %x[%i, 0] : memref<64x8xf32>
  }

  // Bytes 0 to 256 and 32 to 288: written through one of them, so that neither is alone.
  // CHECK-LABEL: func.func private @overlap(
  // CHECK-SAME:    memref<64xf32> {llvm.dereferenceable = 256 : i64}
  // CHECK-SAME:    memref<64xf32> {llvm.dereferenceable = 256 : i64}
  affine.parallel (%i) = (0) to (64) {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %c[%i] : memref<64xf32>
  } {polyblocks.level = "team", polyblocks.kernel = "overlap"}

  // Bytes 0 to 256 and 256 to 512.
  // CHECK-LABEL: func.func private @disjoint(
  // CHECK-SAME:    llvm.noalias, llvm.readonly
  // CHECK-SAME:    llvm.noalias}
  affine.parallel (%i) = (0) to (64) {
    %0 = affine.load %a[%i] : memref<64xf32>
    affine.store %0, %b[%i] : memref<64xf32>
  } {polyblocks.level = "team", polyblocks.kernel = "disjoint"}

  // Stored to through a view that is made in the kernel.
  // CHECK-LABEL: func.func private @seen_flat(
  // CHECK-SAME:    {llvm.dereferenceable = {{[0-9]+}} : i64, llvm.noalias, llvm.readonly}
  // CHECK-SAME:    {llvm.dereferenceable = {{[0-9]+}} : i64, llvm.noalias}
  affine.parallel (%i) = (0) to (64) {
    %0 = affine.load %x[%i, 0] : memref<64x8xf32>
    %flat = memref.collapse_shape %y [[0, 1]] : memref<64x8xf32> into memref<512xf32>
    affine.store %0, %flat[%i] : memref<512xf32>
  } {polyblocks.level = "team", polyblocks.kernel = "seen_flat"}
  return
}
