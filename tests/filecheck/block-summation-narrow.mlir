// PASSES: block-summation
// ARCH: x86-64-v3
//
// Narrow vectors have fewer lanes, and so do wide elements: blocks are as much shorter, so that a
// lane adds up no more numbers than one of a wide vector.

// CHECK-DAG:   #[[FLOATS:.*]] = affine_map<(d0, d1) -> (d0 * -32768 - d1 * 2048 + 100000, 2048)>
// CHECK-DAG:   #[[DOUBLES:.*]] = affine_map<(d0, d1) -> (d0 * -16384 - d1 * 1024 + 100000, 1024)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %{{.*}} = 0 to min #[[FLOATS]](
// CHECK:         affine.for %{{.*}} = 0 to min #[[DOUBLES]](
// CHECK:         affine.for %{{.*}} = 0 to 4096 iter_args
// CHECK-NEXT:      affine.load
func.func @main(%a: memref<100000xf32>, %b: memref<100000xf64>, %c: memref<4096xf32>,
                %d: memref<f32>, %e: memref<f64>, %f: memref<f32>, %y: f32, %z: f64) {
  %s = affine.for %i = 0 to 100000 iter_args(%acc = %y) -> (f32) {
    %x = affine.load %a[%i] : memref<100000xf32>
    %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %s, %d[] : memref<f32>
  %u = affine.for %i = 0 to 100000 iter_args(%acc = %z) -> (f64) {
    %x = affine.load %b[%i] : memref<100000xf64>
    %t = arith.addf %acc, %x fastmath<reassoc,contract> : f64
    affine.yield %t : f64
  }
  affine.store %u, %e[] : memref<f64>
  %v = affine.for %i = 0 to 4096 iter_args(%acc = %y) -> (f32) {
    %x = affine.load %c[%i] : memref<4096xf32>
    %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
    affine.yield %t : f32
  }
  affine.store %v, %f[] : memref<f32>
  return
}
